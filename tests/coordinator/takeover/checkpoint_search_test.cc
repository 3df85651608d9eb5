#include "coordinator/takeover/checkpoint_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "common/base/term.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

class CheckpointSearchTest : public testing::Test {
 protected:
  // Finds under a term that is above all stored timelines.
  CheckpointSearch::Found Find(uint64_t term = MakeTerm(9, 1)) {
    std::optional<CheckpointSearch::Found> found;
    search_.Find(term, [&found](const CheckpointSearch::Found& each) { found = each; });
    loop_.RunUntilIdle();
    EXPECT_TRUE(found.has_value());
    return found.value_or(CheckpointSearch::Found());
  }

  TemporaryDirectory directory_;
  CheckpointStore store_{directory_.path()};
  FakeLoop loop_;
  absl::Status may_begin_;
  absl::Status verdict_;
  CheckpointSearch search_{{.loop = &loop_,
                            .store = &store_,
                            .job_text = "the job",
                            .job_fingerprint = SmallManifest(0, 0).job_fingerprint,
                            .may_begin_anew = [this] { return may_begin_; },
                            .end_of_run = [this](const StoredCheckpoint& newest)
                                -> absl::StatusOr<std::optional<RunEnd>> {
                              if (!verdict_.ok()) return verdict_;
                              return EndOfRun({}, RunVerdict(), newest);
                            }}};
};

TEST_F(CheckpointSearchTest, AnEmptyStoreLeavesTheSeedIfTheRunMayBegin) {
  EXPECT_TRUE(Find().status.ok());
  EXPECT_FALSE(Find().newest.has_value());
  may_begin_ = absl::AlreadyExistsError("a model is there");
  EXPECT_TRUE(absl::IsAlreadyExists(Find().status));
}

TEST_F(CheckpointSearchTest, FindsTheNewestThatIsNotMarkedBad) {
  const StoredCheckpoint older = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 20);
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 40);
  const CheckpointSearch::Found found = Find();
  ASSERT_TRUE(found.newest.has_value());
  EXPECT_EQ(found.newest->directory, newest.directory);
  EXPECT_EQ(found.highest_timeline, MakeTerm(2, 1));
  EXPECT_FALSE(found.end.has_value());
  search_.MarkBad(newest.directory, absl::UnavailableError("the disk fails"));
  const CheckpointSearch::Found next = Find();
  ASSERT_TRUE(next.newest.has_value());
  EXPECT_EQ(next.newest->directory, older.directory);
  EXPECT_THAT(next.problems, testing::ElementsAre(testing::HasSubstr("the disk fails")));
}

TEST_F(CheckpointSearchTest, WithOnlyBadOnesTheRunCannotContinue) {
  search_.MarkBad(WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 40).directory,
                  absl::DataLossError("torn"));
  EXPECT_TRUE(absl::IsDataLoss(Find().status));
  // Another coordinator has led meanwhile: a search under a higher term decides.
  const CheckpointSearch::Found found = Find(MakeTerm(1, 1));
  EXPECT_TRUE(found.status.ok());
  EXPECT_EQ(found.highest_timeline, MakeTerm(2, 1));
}

TEST_F(CheckpointSearchTest, TheLastCheckpointIsTheEndOfTheRun) {
  const StoredCheckpoint last = WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 100);
  const CheckpointSearch::Found found = Find();
  ASSERT_TRUE(found.end.has_value());
  EXPECT_EQ(found.end->last.directory, last.directory);
}

TEST_F(CheckpointSearchTest, AnEndThatIsNotKnownIsAProblemAndTheRunContinues) {
  const StoredCheckpoint last = WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 100);
  verdict_ = absl::DataLossError("cannot read history.csv");
  const CheckpointSearch::Found found = Find();
  EXPECT_TRUE(found.status.ok());
  ASSERT_TRUE(found.newest.has_value());
  EXPECT_EQ(found.newest->directory, last.directory);
  EXPECT_FALSE(found.end.has_value());
  EXPECT_THAT(found.problems, testing::ElementsAre(testing::HasSubstr("history.csv")));
}

TEST_F(CheckpointSearchTest, ListsTheStoreWithItsHighestTimeline) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 60);
  WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 40);
  absl::StatusOr<CheckpointSearch::Stored> stored = absl::UnknownError("not called");
  search_.List([&stored](const absl::StatusOr<CheckpointSearch::Stored>& each) { stored = each; });
  loop_.RunUntilIdle();
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->newest_first.size(), 2u);
  EXPECT_EQ(stored->highest_timeline, MakeTerm(2, 1));
}

}  // namespace
}  // namespace shoal
