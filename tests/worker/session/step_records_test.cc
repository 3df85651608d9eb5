#include "worker/session/step_records.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "common/log/logging.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::HasSubstr;

class StepRecordsTest : public testing::Test {
 protected:
  std::string Read(const std::string& name) const { return FileContentOrEmpty(directory_ / name); }
  const TemporaryDirectory directory_;
};

TEST_F(StepRecordsTest, ALineForEveryFinishedStep) {
  {
    StepRecords records(directory_.path());
    records.SetWorker(4);
    records.Computing(7, {12, 5, 199});
    EXPECT_EQ(Read("steps-worker-4.csv"), "") << "it is not finished";
    records.Finished(4294967303, 7);
    records.Computing(8, {0});
    EXPECT_EQ(Read("steps-worker-4.csv"), "4294967303,7,12 5 199\n")
        << "before the next is computed";
    records.Finished(4294967303, 8);
  }
  EXPECT_EQ(Read("steps-worker-4.csv"), "4294967303,7,12 5 199\n4294967303,8,0\n");
}

TEST_F(StepRecordsTest, AStepThatWasDroppedIsNotRecorded) {
  {
    StepRecords records(directory_.path());
    records.Computing(7, {1});
    records.Computing(3, {2});
    records.Finished(9, 7);
    records.Finished(9, 3);
  }
  EXPECT_EQ(Read("steps-worker-0.csv"), "9,3,2\n");
}

TEST_F(StepRecordsTest, LengthensWhatIsThere) {
  for (const uint64_t step : {1, 2}) {
    StepRecords records(directory_.path());
    records.Computing(step, {step});
    records.Finished(9, step);
  }
  EXPECT_EQ(Read("steps-worker-0.csv"), "9,1,1\n9,2,2\n");
}

TEST_F(StepRecordsTest, GoesOnUnderAnotherIndex) {
  {
    StepRecords records(directory_.path());
    records.SetWorker(0);
    records.Computing(1, {10});
    records.Finished(9, 1);
    records.SetWorker(5);
    records.Computing(2, {20});
    records.Finished(9, 2);
  }
  EXPECT_EQ(Read("steps-worker-0.csv"), "9,1,10\n");
  EXPECT_EQ(Read("steps-worker-5.csv"), "9,2,20\n");
}

// A file that takes nothing, as on a disk that hangs: a pipe that is full.
TEST_F(StepRecordsTest, TheLoopNeverWaitsForTheFile) {
  const std::string path = directory_ / "steps-worker-0.csv";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int reader = open(path.c_str(), O_RDWR | O_NONBLOCK);
  const std::string filling(4096, 'x');
  size_t filled = 0;
  while (write(reader, filling.data(), filling.size()) > 0) filled += filling.size();

  std::thread computing;
  {
    StepRecords records(directory_.path());
    records.Computing(1, {10});
    records.Finished(9, 1);
    computing = std::thread([&] { records.Computing(2, {20}); });
    std::string all;
    records.Finished(9, 3);  // whether the file hangs by now or not
    const std::string end = "9,1,10\n";
    while (!all.ends_with(end)) {
      pollfd readable = {.fd = reader, .events = POLLIN};
      ASSERT_EQ(poll(&readable, 1, 60'000), 1);
      char buffer[4096];
      all.append(buffer, std::max<ssize_t>(0, read(reader, buffer, sizeof(buffer))));
    }
    EXPECT_EQ(all.size(), filled + end.size());
    computing.join();
  }
  close(reader);
}

TEST_F(StepRecordsTest, AnErrorNamesTheFile) {
  std::string log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log += message; });
  StepRecords records(directory_ / "missing");
  records.SetWorker(3);
  records.Computing(1, {1});
  records.Finished(9, 1);  // goes nowhere
  records.Computing(2, {1});
  SendLogTo({});
  EXPECT_THAT(log, HasSubstr("/missing/steps-worker-3.csv"));
}

}  // namespace
}  // namespace shoal
