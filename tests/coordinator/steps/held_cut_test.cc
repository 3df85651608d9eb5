// Cuts that the ps keep: for an evaluation, or until their rows have been fetched.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/coordinator/cuts/checkpointer_fixture.h"

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(CheckpointerTest, AHeldCutIsKeptUntilReleased) {
  Begin(40, /*hold=*/true);
  const proto::Fence fence = TakeFence();
  EXPECT_TRUE(fence.hold());
  EXPECT_TRUE(checkpointer_->held());
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Write(ps, 40, fence.directory());
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40", "committed 40"));
  EXPECT_FALSE(checkpointer_->idle());
  loop_.Advance(10 * kDeadline);
  EXPECT_THAT(TakeEvents(), IsEmpty())
      << "the deadline is for the files; an evaluation may take longer";
  checkpointer_->Release();
  EXPECT_THAT(TakeEvents(), ElementsAre("idle"));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].release().cut_step(), 40u);
  checkpointer_->Release();
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(CheckpointerTest, AHeldCutMayBeReleasedBeforeItsFilesAreWritten) {
  Begin(40, true);
  const std::string directory = TakeFence().directory();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 40);
  checkpointer_->Release();
  EXPECT_FALSE(checkpointer_->held());
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40"));
  for (int ps = 0; ps < 2; ++ps) Write(ps, 40, directory);
  EXPECT_THAT(TakeEvents(), ElementsAre("committed 40", "idle"));
}

TEST_F(CheckpointerTest, ThePsKeepACutUntilItsRowsHaveBeenFetched) {
  Begin(40, /*hold=*/true);
  TakeFence();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 40);
  for (int ps = 0; ps < 2; ++ps) DoNotSee(ps, 40);
  AnswerQuestion();
  checkpointer_->Release();
  EXPECT_THAT(sent_, IsEmpty()) << "a ps that hears Release forgets the rows";
  while (!questions_.empty()) AnswerQuestion();
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40", "committed 40", "idle"));
  EXPECT_THAT(StoredSteps(), ElementsAre(40));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].release().cut_step(), 40u);
}

// It would end the cut, and have nothing left when it is asked for its rows.
TEST_F(CheckpointerTest, APsThatMaySeeTheDirectoryHearsNoRelease) {
  Begin(40, /*hold=*/true);
  TakeFence();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 40);
  DoNotSee(0, 40);
  while (!questions_.empty()) AnswerQuestion();
  checkpointer_->Release();
  EXPECT_THAT(sent_, IsEmpty()) << "ps 1's word is on the way";
  DoNotSee(1, 40);
  while (!questions_.empty()) AnswerQuestion();
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40", "committed 40", "idle"));
  ASSERT_EQ(sent_.size(), 1u);
  EXPECT_EQ(sent_[0].release().cut_step(), 40u);
}

TEST_F(CheckpointerTest, APsThatEndsACutWhoseRowsAreFetchedGivesItUp) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 40);
  for (int ps = 0; ps < 2; ++ps) DoNotSee(ps, 40);
  proto::ControlReply ended;
  *ended.mutable_cut_rows() = SmallCutRows(shard_map_, 0, questions_[0].second);
  ended.mutable_cut_rows()->set_term(term_);
  ended.mutable_cut_rows()->clear_values();
  Reply(0, ended);
  EXPECT_THAT(TakeEvents(),
              ElementsAre("accepted 40", "ready 40",
                          testing::AllOf(HasSubstr("cancelled 40: ps 0: "), HasSubstr(" 0 bytes")),
                          "idle"));
  EXPECT_FALSE(std::filesystem::exists(directory));
  questions_.clear();
  WriteCheckpoint(60);
  EXPECT_THAT(StoredSteps(), ElementsAre(60));
}

TEST_F(CheckpointerTest, AHeldCutOutlivesAWriteError) {
  Begin(40, true);
  TakeFence();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 40);
  FailToWrite(0, 40, "disk full");
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40"))
      << "it is evaluated all the same";
  EXPECT_TRUE(checkpointer_->held());
  EXPECT_THAT(checkpointer_->last_error(), HasSubstr("disk full"));
  EXPECT_THAT(errors_, testing::ElementsAre(HasSubstr("disk full")));
  checkpointer_->Release();
  EXPECT_THAT(TakeEvents(), ElementsAre("idle"));
}

TEST_F(CheckpointerTest, WithoutADirectoryOnlyAnEvaluationGoesOn) {
  ASSERT_TRUE(std::filesystem::remove_all(directory_.path()));
  WriteAll(directory_.path(), "a file where the directory should be");
  Begin(40);
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("cancelled 40"), "idle"));
  EXPECT_THAT(sent_, IsEmpty());
  EXPECT_NE(checkpointer_->last_error(), "");
  Begin(50, true);
  EXPECT_EQ(TakeFence().directory(), "");
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 50);
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 50);
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 50", "ready 50"));
  checkpointer_->Release();
  EXPECT_THAT(TakeEvents(), ElementsAre("idle"));
}

}  // namespace
}  // namespace shoal
