#include "coordinator/takeover/end_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "common/base/term.h"
#include "common/log/logging.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/passing_file_system.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// A disk whose directories may not be readable.
class UnlistedDisk : public PassingFileSystem {
 public:
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory) override {
    if (unlisted) return absl::UnknownError("cannot list " + directory);
    return PassingFileSystem::List(directory);
  }
  bool unlisted = false;
};

class EndSearchTest : public testing::Test {
 protected:
  void Look() {
    search_.Look([this](const RunEnd& end) { ends_.push_back(end.last.directory); });
  }

  TemporaryDirectory directory_;
  UnlistedDisk disk_;
  CheckpointStore store_{directory_.path(), &disk_};
  FakeLoop loop_;
  std::vector<std::string> ends_;
  absl::Status verdict_;
  EndSearch search_{{.loop = &loop_,
                     .store = &store_,
                     .job_fingerprint = SmallManifest(0, 0).job_fingerprint,
                     .end_of_run = [this](const StoredCheckpoint& newest)
                         -> absl::StatusOr<std::optional<RunEnd>> {
                       if (!verdict_.ok()) return verdict_;
                       return EndOfRun({}, RunVerdict(), newest);
                     }}};
};

TEST_F(EndSearchTest, OnlyTheLastCheckpointIsTheEnd) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 60);
  Look();
  loop_.RunUntilIdle();
  EXPECT_THAT(ends_, IsEmpty());
  const StoredCheckpoint last = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  Look();
  loop_.RunUntilIdle();
  EXPECT_THAT(ends_, ElementsAre(last.directory));
}

TEST_F(EndSearchTest, LooksOnceAtATime) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  Look();
  Look();
  loop_.RunUntilIdle();
  EXPECT_EQ(ends_.size(), 1u);
  Look();
  loop_.RunUntilIdle();
  EXPECT_EQ(ends_.size(), 2u);
}

TEST_F(EndSearchTest, AStoreThatCannotBeListedIsLoggedOnce) {
  const StoredCheckpoint last = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  disk_.unlisted = true;
  for (int i = 0; i < 3; ++i) {
    Look();
    loop_.RunUntilIdle();
  }
  SendLogTo({});
  EXPECT_THAT(log, ElementsAre(HasSubstr(directory_.path())));
  EXPECT_THAT(ends_, IsEmpty());
  disk_.unlisted = false;
  Look();
  loop_.RunUntilIdle();
  EXPECT_THAT(ends_, ElementsAre(last.directory));
}

TEST_F(EndSearchTest, AVerdictThatCannotBeReadIsLoggedOnce) {
  const StoredCheckpoint last = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  std::vector<std::string> log;
  SendLogTo([&log](const std::string& message, const LogFields&) { log.push_back(message); });
  verdict_ = absl::DataLossError("cannot read history.csv");
  for (int i = 0; i < 3; ++i) {
    Look();
    loop_.RunUntilIdle();
  }
  SendLogTo({});
  EXPECT_THAT(log, ElementsAre(HasSubstr("history.csv")));
  EXPECT_THAT(ends_, IsEmpty());
  verdict_ = absl::OkStatus();
  Look();
  loop_.RunUntilIdle();
  EXPECT_THAT(ends_, ElementsAre(last.directory));
}

TEST_F(EndSearchTest, StoppedItReportsNothing) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  Look();
  search_.Stop();
  loop_.RunUntilIdle();
  EXPECT_THAT(ends_, IsEmpty());
}

}  // namespace
}  // namespace shoal
