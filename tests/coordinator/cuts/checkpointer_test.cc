// Cuts from the fence to the manifest, and what comes between.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/coordinator/cuts/checkpointer_fixture.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(CheckpointerTest, ACutFromFenceToManifest) {
  EXPECT_TRUE(checkpointer_->idle());
  Begin(40);
  EXPECT_FALSE(checkpointer_->idle());
  EXPECT_EQ(checkpointer_->step(), 40u);
  ASSERT_EQ(sent_.size(), 1u);
  const proto::Fence fence = TakeFence();
  EXPECT_EQ(fence.timeline(), kTimeline);
  EXPECT_EQ(fence.cut_step(), 40u);
  EXPECT_FALSE(fence.hold());
  EXPECT_GT(NamesIn(fence.directory()).size(), 2u) << "the files are laid out before the fence";

  Accept(0, 40);
  EXPECT_FALSE(checkpointer_->accepted());
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "not before all have accepted";
  Accept(1, 40);
  EXPECT_TRUE(checkpointer_->accepted());
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40"));
  loop_.Advance(seconds(7));
  Ready(1, 40);
  Write(1, 40, fence.directory());
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(StoredSteps(), IsEmpty());
  Ready(0, 40);
  EXPECT_THAT(TakeEvents(), ElementsAre("ready 40"));
  Write(0, 40, fence.directory());
  EXPECT_THAT(TakeEvents(), ElementsAre("committed 40", "idle"));
  EXPECT_THAT(StoredSteps(), ElementsAre(40));
  EXPECT_TRUE(checkpointer_->idle());
  EXPECT_FALSE(checkpointer_->accepted());

  ASSERT_TRUE(checkpointer_->last().has_value());
  const Manifest& manifest = checkpointer_->last()->manifest;
  EXPECT_EQ(manifest.timeline, kTimeline);
  EXPECT_EQ(manifest.total_steps, 200u);
  EXPECT_EQ(manifest.epoch, 1u);
  EXPECT_EQ(manifest.epoch_position, 32u);
  EXPECT_EQ(checkpointer_->last_at(), loop_.Now());
  EXPECT_EQ(checkpointer_->last_duration(), seconds(7));
  EXPECT_EQ(checkpointer_->last_error(), "");
  loop_.Advance(2 * kDeadline);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(CheckpointerTest, RepeatedAndForeignAnswersCountForNothing) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  Accept(0, 40);
  Accept(0, 40);
  Accept(1, 30);  // of another cut
  Reject(1, 30, 99);
  Ready(1, 30);
  FailToWrite(1, 30, "no");
  EXPECT_THAT(TakeEvents(), IsEmpty());
  Accept(1, 40);
  Accept(1, 40);
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40"));
  Ready(0, 40);
  Ready(1, 40);
  Ready(1, 40);
  EXPECT_THAT(TakeEvents(), ElementsAre("ready 40"));
  Write(0, 40, directory);
  Write(0, 40, directory);
  EXPECT_THAT(StoredSteps(), IsEmpty());
  Write(1, 40, directory);
  EXPECT_THAT(TakeEvents(), ElementsAre("committed 40", "idle"));
  Accept(0, 40);  // too late
  FailToWrite(0, 40, "no");
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

// A cut that is begun again at the same step has a fresh term: what is said of the former one says
// nothing of it.
TEST_F(CheckpointerTest, LateAnswersAboutACutAtTheSameStepCountForNothing) {
  Begin(40);
  const std::string former = TakeFence().directory();
  checkpointer_->Cancel("a ps was slow");
  TakeEvents();
  term_ = kTimeline + 1;
  Begin(40);
  const std::string directory = TakeFence().directory();
  term_ = kTimeline;
  for (int ps = 0; ps < 2; ++ps) {
    Accept(ps, 40);
    Ready(ps, 40);
    DoNotSee(ps, 40);
    FailToWrite(ps, 40, "no");
    Reject(ps, 40, 43);
  }
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_THAT(questions_, IsEmpty());
  EXPECT_FALSE(checkpointer_->accepted());
  term_ = kTimeline + 1;
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Write(ps, 40, directory);
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40", "committed 40", "idle"));
}

TEST_F(CheckpointerTest, NobodyIsReadyBeforeItHasAccepted) {
  Begin(40, /*hold=*/true);
  const std::string directory = TakeFence().directory();
  for (int ps = 0; ps < 2; ++ps) Ready(ps, 40);
  for (int ps = 0; ps < 2; ++ps) Write(ps, 40, directory);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

// Where the job ends at step 200, nobody has applied that one.
TEST_F(CheckpointerTest, ARejectionThatCannotBeIsLoggedAndGivesNoStep) {
  for (const uint64_t highest : {uint64_t{0}, uint64_t{39}, uint64_t{200}, UINT64_MAX}) {
    Begin(40);
    Reject(1, 40, highest);
    EXPECT_THAT(
        TakeEvents(),
        ElementsAre(testing::AllOf(HasSubstr("cancelled 40: ps 1: "),
                                   HasSubstr(absl::StrCat("it has applied step ", highest)),
                                   HasSubstr("restart it"), testing::Not(HasSubstr("highest"))),
                    "idle"));
    EXPECT_THAT(checkpointer_->last_error(), HasSubstr("ps 1: ")) << "the status has it";
  }
}

TEST_F(CheckpointerTest, TextsOfAPsAreCut) {
  Begin(40);
  TakeFence();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  FailToWrite(1, 40, std::string(1 << 20, 'x'));
  EXPECT_LT(checkpointer_->last_error().size(), 5000u);
}

TEST_F(CheckpointerTest, OldCheckpointsGo) {
  for (const uint64_t step : {10, 20, 30, 40}) WriteCheckpoint(step);
  EXPECT_THAT(StoredSteps(), ElementsAre(40, 30));
}

TEST_F(CheckpointerTest, ARejectionCancelsTheCut) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  Accept(0, 40);
  Reject(1, 40, 43);
  EXPECT_THAT(TakeEvents(), ElementsAre("cancelled 40: ps 1: too late highest 43", "idle"));
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_THAT(sent_, IsEmpty()) << "no message is needed: the next fence replaces it";
  WriteCheckpoint(44);
  EXPECT_THAT(StoredSteps(), ElementsAre(44));
}

TEST_F(CheckpointerTest, ItsDeadlineGivesTheCutUp) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  Accept(0, 40);
  Accept(1, 40);
  Ready(0, 40);
  loop_.Advance(kDeadline - Time(1));
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40"));
  loop_.Advance(Time(1));
  EXPECT_THAT(TakeEvents(), ElementsAre("cancelled 40: it was not complete in time", "idle"));
  EXPECT_FALSE(std::filesystem::exists(directory));
}

TEST_F(CheckpointerTest, TheNextCutHasADeadlineOfItsOwn) {
  WriteCheckpoint(40);
  loop_.Advance(kDeadline - seconds(1));
  TakeEvents();
  Begin(50);
  loop_.Advance(kDeadline - seconds(1));
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(CheckpointerTest, AWriteErrorGivesTheCutUp) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  FailToWrite(1, 40, "cannot write x: No space left on device");
  EXPECT_THAT(TakeEvents(),
              ElementsAre("accepted 40", HasSubstr("cancelled 40: ps 1: cannot write x"), "idle"));
  EXPECT_THAT(checkpointer_->last_error(), HasSubstr("No space left on device"));
  EXPECT_FALSE(std::filesystem::exists(directory));
  WriteCheckpoint(50);
  EXPECT_EQ(checkpointer_->last_error(), "") << "the newest attempt went well";
}

TEST_F(CheckpointerTest, FilesOnDiskMustMatchTheWordOfThePs) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  Write(0, 40, directory);
  auto parts = WriteElements(layout_, directory, 5, 100, 40);
  parts[0].crc32c ^= 1;
  Answer(1, 40, parts);
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", HasSubstr("cancelled 40: "), "idle"));
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_THAT(StoredSteps(), IsEmpty());
  EXPECT_FALSE(checkpointer_->last().has_value());
}

TEST_F(CheckpointerTest, ACutCancelledWhileItsFilesAreLaidOutLeavesNothing) {
  loop_.set_hold_offloads(true);
  Begin(40);
  checkpointer_->Cancel("the timeline is over");
  EXPECT_THAT(TakeEvents(), ElementsAre("cancelled 40: the timeline is over", "idle"));
  Begin(50);  // at once, at the same time
  loop_.set_hold_offloads(false);
  loop_.RunUntilIdle();
  ASSERT_EQ(sent_.size(), 1u) << "the first one's directory is not taken for the second's";
  EXPECT_EQ(sent_[0].fence().cut_step(), 50u);
  EXPECT_THAT(sent_[0].fence().directory(), HasSubstr("step-000000000050"));
  EXPECT_THAT(NamesIn(directory_.path()), ElementsAre("step-000000000050-0-0000004d"));
}

TEST_F(CheckpointerTest, ACheckpointCommittedAfterItsCutWasCancelledStays) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  TakeEvents();
  loop_.set_hold_offloads(true);
  for (int ps = 0; ps < 2; ++ps) Write(ps, 40, directory);
  checkpointer_->Cancel("the timeline is over");
  EXPECT_THAT(TakeEvents(), ElementsAre("cancelled 40: the timeline is over", "idle"));
  Begin(50);
  loop_.set_hold_offloads(false);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("committed 40"));
  EXPECT_THAT(StoredSteps(), ElementsAre(40));
  EXPECT_EQ(checkpointer_->step(), 50u);
  EXPECT_EQ(TakeFence().cut_step(), 50u);
}

TEST_F(CheckpointerTest, TheFenceIsSentAgainToThePsWhoseStreamIsNew) {
  checkpointer_->Resend(0);
  EXPECT_THAT(resent_, IsEmpty()) << "there is none";
  loop_.set_hold_offloads(true);
  Begin(40);
  checkpointer_->Resend(0);
  EXPECT_THAT(resent_, IsEmpty()) << "not before its files are there";
  loop_.set_hold_offloads(false);
  loop_.RunUntilIdle();
  const proto::Fence first = TakeFence();
  checkpointer_->Resend(1);
  ASSERT_EQ(resent_.size(), 1u);
  EXPECT_EQ(resent_[0].first, 1);
  EXPECT_EQ(resent_[0].second.SerializeAsString(), first.SerializeAsString());
  EXPECT_THAT(sent_, IsEmpty());
}

// Somebody fenced far ahead under this term: only a fresh one gets a cut accepted.
TEST_F(CheckpointerTest, ASupersededFenceAsksForAFreshTerm) {
  Begin(40);
  proto::ControlReply reply;
  reply.mutable_fence_rejected()->set_term(term_);
  reply.mutable_fence_rejected()->set_cut_step(40);
  reply.mutable_fence_rejected()->set_superseded(true);
  reply.mutable_fence_rejected()->set_reason("why");
  checkpointer_->OnReply(1, reply);
  EXPECT_THAT(TakeEvents(), ElementsAre("superseded", "cancelled 40: ps 1: why", "idle"));
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(CheckpointerTest, TheNextMayBeginAsSoonAsOneIsOver) {
  on_idle_ = [this] {
    checkpointer_->Begin({.timeline = kTimeline, .step = 50, .total_steps = 200});
  };
  WriteCheckpoint(40);
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40", "committed 40", "idle"));
  EXPECT_EQ(checkpointer_->step(), 50u);
  EXPECT_EQ(TakeFence().cut_step(), 50u);
}

TEST_F(CheckpointerTest, OutcomesWaitUntilTheyAreTaken) {
  std::vector<std::string> outcomes;
  Begin(40);
  proto::ControlReply accepted;
  accepted.mutable_fence_accepted()->set_term(term_);
  accepted.mutable_fence_accepted()->set_cut_step(40);
  for (int ps = 0; ps < 2; ++ps) checkpointer_->OnReply(ps, accepted);
  checkpointer_->Cancel("the timeline is over");
  for (const Checkpointer::Outcome& each : checkpointer_->TakeOutcomes())
    outcomes.push_back(TextOf(each));
  EXPECT_THAT(outcomes, ElementsAre("accepted 40", "cancelled 40: the timeline is over"));
  EXPECT_THAT(checkpointer_->TakeOutcomes(), IsEmpty());
}

TEST_F(CheckpointerTest, MayBeDestroyedWhileFilesAreWritten) {
  loop_.set_hold_offloads(true);
  Begin(40);
  checkpointer_.reset();
  loop_.set_hold_offloads(false);
  loop_.Advance(2 * kDeadline);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

}  // namespace
}  // namespace shoal
