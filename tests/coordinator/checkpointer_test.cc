#include "coordinator/checkpointer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/coordinator/small_cut.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Time kDeadline = seconds(100);
constexpr uint64_t kTimeline = 77;

class CheckpointerTest : public testing::Test {
 protected:
  CheckpointerTest() {
    checkpointer_ = std::make_unique<Checkpointer>(Checkpointer::Options{
        .loop = &loop_,
        .store = &store_,
        .layout = &layout_,
        .shard_map = &shard_map_,
        .variables = &variables_,
        .ps_count = 2,
        .keep = 2,
        .deadline = kDeadline,
        .texts = SmallTexts(),
        .manifest = SmallManifest(0, 0),
        .broadcast = [this](const proto::ControlRequest& request) { sent_.push_back(request); },
        .send =
            [this](int ps, const proto::ControlRequest& request) {
              questions_.emplace_back(ps, request.read_cut());
            },
        .on_accepted =
            [this](uint64_t step) { events_.push_back(absl::StrCat("accepted ", step)); },
        .on_ready = [this](uint64_t step) { events_.push_back(absl::StrCat("ready ", step)); },
        .on_committed =
            [this](const StoredCheckpoint& checkpoint) {
              events_.push_back(absl::StrCat("committed ", checkpoint.manifest.cut_step));
            },
        .on_error = [this](const std::string& why) { errors_.push_back(why); },
        .on_given_up =
            [this](uint64_t step, const std::string& why, std::optional<uint64_t> highest) {
              std::string event = absl::StrCat("given up ", step, ": ", why);
              if (highest.has_value()) absl::StrAppend(&event, " highest ", *highest);
              events_.push_back(event);
            },
        .on_idle =
            [this] {
              EXPECT_TRUE(checkpointer_->idle());
              events_.push_back("idle");
              if (on_idle_ != nullptr) std::exchange(on_idle_, nullptr)();
            }});
  }

  void Begin(uint64_t step, bool hold = false) {
    checkpointer_->Begin({.timeline = kTimeline,
                          .step = step,
                          .term = term_,
                          .epoch = 1,
                          .epoch_position = 32,
                          .total_steps = 200,
                          .hold = hold});
    loop_.RunUntilIdle();
  }
  // The fence that was broadcast last.
  proto::Fence TakeFence() {
    EXPECT_FALSE(sent_.empty());
    if (sent_.empty()) return {};
    EXPECT_TRUE(sent_.back().has_fence());
    return std::exchange(sent_, {}).back().fence();
  }
  void Accept(int ps, uint64_t step) {
    proto::ControlReply reply;
    reply.mutable_fence_accepted()->set_term(term_);
    reply.mutable_fence_accepted()->set_cut_step(step);
    Reply(ps, reply);
  }
  void Ready(int ps, uint64_t step) {
    proto::ControlReply reply;
    reply.mutable_cut_ready()->set_term(term_);
    reply.mutable_cut_ready()->set_cut_step(step);
    Reply(ps, reply);
  }
  void Refuse(int ps, uint64_t step, uint64_t highest) {
    proto::ControlReply reply;
    reply.mutable_fence_refused()->set_term(term_);
    reply.mutable_fence_refused()->set_cut_step(step);
    reply.mutable_fence_refused()->set_highest_step(highest);
    reply.mutable_fence_refused()->set_reason("too late");
    Reply(ps, reply);
  }
  // Writes this ps' half of the files, and says so.
  void Write(int ps, uint64_t step, const std::string& directory) {
    Answer(ps, step, WriteElements(layout_, directory, ps == 0 ? 0 : 5, ps == 0 ? 5 : 100, step));
  }
  void Answer(int ps, uint64_t step, const std::vector<WrittenPart>& parts) {
    proto::ControlReply reply;
    reply.mutable_written()->set_term(term_);
    reply.mutable_written()->set_cut_step(step);
    for (const WrittenPart& part : parts) {
      proto::WrittenRange* range = reply.mutable_written()->add_ranges();
      range->set_file(part.file);
      range->set_offset_bytes(part.offset_bytes);
      range->set_size_bytes(part.size_bytes);
      range->set_crc32c(part.crc32c);
    }
    Reply(ps, reply);
  }
  void DoNotSee(int ps, uint64_t step) {
    proto::ControlReply reply;
    reply.mutable_written()->set_term(term_);
    reply.mutable_written()->set_cut_step(step);
    reply.mutable_written()->set_not_seen(true);
    Reply(ps, reply);
  }
  void AnswerQuestion() {
    ASSERT_FALSE(questions_.empty());
    const auto [ps, read] = questions_.front();
    questions_.erase(questions_.begin());
    proto::ControlReply reply;
    *reply.mutable_cut_rows() = SmallCutRows(shard_map_, ps, read);
    reply.mutable_cut_rows()->set_term(term_);
    Reply(ps, reply);
  }
  void FailToWrite(int ps, uint64_t step, const std::string& error) {
    proto::ControlReply reply;
    reply.mutable_written()->set_term(term_);
    reply.mutable_written()->set_cut_step(step);
    reply.mutable_written()->set_error(error);
    Reply(ps, reply);
  }
  void Reply(int ps, const proto::ControlReply& reply) {
    checkpointer_->OnReply(ps, reply);
    loop_.RunUntilIdle();
  }
  // Everything, as it goes when nothing goes wrong.
  void WriteCheckpoint(uint64_t step) {
    Begin(step);
    const std::string directory = TakeFence().directory();
    for (int ps = 0; ps < 2; ++ps) Accept(ps, step);
    for (int ps = 0; ps < 2; ++ps) Ready(ps, step);
    for (int ps = 0; ps < 2; ++ps) Write(ps, step, directory);
  }
  std::vector<uint64_t> StoredSteps() {
    std::vector<uint64_t> steps;
    const std::vector<StoredCheckpoint> stored = *store_.List(nullptr);
    for (const StoredCheckpoint& checkpoint : stored) {
      EXPECT_TRUE(store_.Verify(checkpoint).ok());
      steps.push_back(checkpoint.manifest.cut_step);
    }
    return steps;
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  uint64_t term_ = kTimeline;  // under which cuts are begun and answered
  TemporaryDirectory directory_;
  CheckpointStore store_{directory_.path()};
  const CheckpointLayout layout_ = SmallLayout();
  const std::vector<Variable> variables_ = SmallVariables();
  const ShardMap shard_map_ = SmallShardMap();
  FakeLoop loop_;
  std::vector<proto::ControlRequest> sent_;
  std::vector<std::pair<int, proto::ReadCut>> questions_;  // to ps that do not see the directory
  std::vector<std::string> events_;
  std::vector<std::string> errors_;
  std::function<void()> on_idle_;
  std::unique_ptr<Checkpointer> checkpointer_;
};

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
  Refuse(1, 30, 99);
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
  checkpointer_->GiveUp("a ps was slow");
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
    Refuse(ps, 40, 43);
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
TEST_F(CheckpointerTest, ARefusalThatCannotBeIsSaidAndGivesNoStep) {
  for (const uint64_t highest : {uint64_t{0}, uint64_t{39}, uint64_t{200}, UINT64_MAX}) {
    Begin(40);
    Refuse(1, 40, highest);
    EXPECT_THAT(
        TakeEvents(),
        ElementsAre(testing::AllOf(HasSubstr("given up 40: ps 1: "),
                                   HasSubstr(absl::StrCat("it has applied step ", highest)),
                                   HasSubstr("start it anew"), testing::Not(HasSubstr("highest"))),
                    "idle"));
    EXPECT_THAT(checkpointer_->last_error(), HasSubstr("which cannot be")) << "the status has it";
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

TEST_F(CheckpointerTest, ARefusalGivesTheCutUp) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  Accept(0, 40);
  Refuse(1, 40, 43);
  EXPECT_THAT(TakeEvents(), ElementsAre("given up 40: ps 1: too late highest 43", "idle"));
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
  EXPECT_THAT(TakeEvents(), ElementsAre("given up 40: it was not complete in time", "idle"));
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
              ElementsAre("accepted 40", HasSubstr("given up 40: ps 1: cannot write x"), "idle"));
  EXPECT_THAT(checkpointer_->last_error(), HasSubstr("No space left on device"));
  EXPECT_FALSE(std::filesystem::exists(directory));
  WriteCheckpoint(50);
  EXPECT_EQ(checkpointer_->last_error(), "") << "the newest attempt went well";
}

TEST_F(CheckpointerTest, WhatIsOnDiskMustBeWhatThePsSay) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  Write(0, 40, directory);
  auto parts = WriteElements(layout_, directory, 5, 100, 40);
  parts[0].crc32c ^= 1;
  Answer(1, 40, parts);
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", HasSubstr("given up 40: "), "idle"));
  EXPECT_FALSE(std::filesystem::exists(directory));
  EXPECT_THAT(StoredSteps(), IsEmpty());
  EXPECT_FALSE(checkpointer_->last().has_value());
}

TEST_F(CheckpointerTest, ACutThatIsGivenUpWhileItsFilesAreLaidOutLeavesNothing) {
  loop_.set_hold_offloads(true);
  Begin(40);
  checkpointer_->GiveUp("the timeline is over");
  EXPECT_THAT(TakeEvents(), ElementsAre("given up 40: the timeline is over", "idle"));
  Begin(50);  // at once, at the same time
  loop_.set_hold_offloads(false);
  loop_.RunUntilIdle();
  ASSERT_EQ(sent_.size(), 1u) << "the first one's directory is not taken for the second's";
  EXPECT_EQ(sent_[0].fence().cut_step(), 50u);
  EXPECT_THAT(sent_[0].fence().directory(), HasSubstr("step-000000000050"));
  EXPECT_THAT(NamesIn(directory_.path()), ElementsAre("step-000000000050-0-0000004d"));
}

TEST_F(CheckpointerTest, ACheckpointCommittedAfterItsCutWasGivenUpIsOneAllTheSame) {
  Begin(40);
  const std::string directory = TakeFence().directory();
  for (int ps = 0; ps < 2; ++ps) Accept(ps, 40);
  TakeEvents();
  loop_.set_hold_offloads(true);
  for (int ps = 0; ps < 2; ++ps) Write(ps, 40, directory);
  checkpointer_->GiveUp("the timeline is over");
  EXPECT_THAT(TakeEvents(), ElementsAre("given up 40: the timeline is over", "idle"));
  Begin(50);
  loop_.set_hold_offloads(false);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("committed 40"));
  EXPECT_THAT(StoredSteps(), ElementsAre(40));
  EXPECT_EQ(checkpointer_->step(), 50u);
  EXPECT_EQ(TakeFence().cut_step(), 50u);
}

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
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40",
                                        HasSubstr("given up 40: ps 0: it sent 0 bytes"), "idle"));
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
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("given up 40"), "idle"));
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

TEST_F(CheckpointerTest, TheFenceIsSentAgain) {
  checkpointer_->Resend();
  EXPECT_THAT(sent_, IsEmpty()) << "there is none";
  loop_.set_hold_offloads(true);
  Begin(40);
  checkpointer_->Resend();
  EXPECT_THAT(sent_, IsEmpty()) << "not before its files are there";
  loop_.set_hold_offloads(false);
  loop_.RunUntilIdle();
  const proto::Fence first = TakeFence();
  checkpointer_->Resend();
  EXPECT_EQ(TakeFence().SerializeAsString(), first.SerializeAsString());
}

TEST_F(CheckpointerTest, TheNextMayBeginFromOnIdle) {
  on_idle_ = [this] {
    checkpointer_->Begin({.timeline = kTimeline, .step = 50, .total_steps = 200});
  };
  WriteCheckpoint(40);
  EXPECT_THAT(TakeEvents(), ElementsAre("accepted 40", "ready 40", "committed 40", "idle"));
  EXPECT_EQ(checkpointer_->step(), 50u);
  EXPECT_EQ(TakeFence().cut_step(), 50u);
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
