#include "coordinator/takeover/end_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/term.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class EndSearchTest : public testing::Test {
 protected:
  void Look() {
    search_.Look([this](const RunEnd& end) { ends_.push_back(end.last.directory); });
  }

  TemporaryDirectory directory_;
  CheckpointStore store_{directory_.path()};
  FakeLoop loop_;
  std::vector<std::string> ends_;
  EndSearch search_{{.loop = &loop_,
                     .store = &store_,
                     .job_fingerprint = SmallManifest(0, 0).job_fingerprint,
                     .end_of_run = [](const StoredCheckpoint& newest) {
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

TEST_F(EndSearchTest, StoppedItReportsNothing) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  Look();
  search_.Stop();
  loop_.RunUntilIdle();
  EXPECT_THAT(ends_, IsEmpty());
}

}  // namespace
}  // namespace shoal
