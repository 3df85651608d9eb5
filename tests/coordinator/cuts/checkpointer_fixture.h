#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/cuts/checkpointer.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/coordinator/cuts/small_cut.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {

inline constexpr Time kDeadline = std::chrono::seconds(100);
inline constexpr uint64_t kTimeline = 77;

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
              if (request.has_fence()) {
                resent_.emplace_back(ps, request.fence());
              } else {
                questions_.emplace_back(ps, request.read_cut());
              }
            },
        .wakeup = &wakeup_});
  }

  void Begin(uint64_t step, bool hold = false) {
    busy_ = true;
    checkpointer_->Begin({.timeline = kTimeline,
                          .step = step,
                          .term = term_,
                          .epoch = 1,
                          .epoch_position = 32,
                          .total_steps = 200,
                          .hold = hold});
    loop_.RunUntilIdle();
  }
  // Adds the outcomes to events_, and "idle" when a cut is over.
  void TakeOutcomes() {
    for (const Checkpointer::Outcome& outcome : checkpointer_->TakeOutcomes()) {
      if (const auto* failed = std::get_if<Checkpointer::Failed>(&outcome)) {
        errors_.push_back(failed->why);
      } else {
        events_.push_back(TextOf(outcome));
      }
    }
    if (!checkpointer_->idle() || !std::exchange(busy_, false)) return;
    events_.push_back("idle");
    if (on_idle_ != nullptr) std::exchange(on_idle_, nullptr)();
  }
  static std::string TextOf(const Checkpointer::Outcome& outcome) {
    if (const auto* accepted = std::get_if<Checkpointer::Accepted>(&outcome))
      return absl::StrCat("accepted ", accepted->step);
    if (const auto* ready = std::get_if<Checkpointer::Ready>(&outcome))
      return absl::StrCat("ready ", ready->step);
    if (const auto* committed = std::get_if<Checkpointer::Committed>(&outcome))
      return absl::StrCat("committed ", committed->checkpoint.manifest.cut_step);
    if (const auto* cut = std::get_if<Checkpointer::Cancelled>(&outcome)) {
      return absl::StrCat(
          "cancelled ", cut->step, ": ", cut->why,
          cut->highest_step.has_value() ? absl::StrCat(" highest ", *cut->highest_step) : "");
    }
    return "superseded";
  }
  // Returns the newest broadcast fence.
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
  void Reject(int ps, uint64_t step, uint64_t highest) {
    proto::ControlReply reply;
    reply.mutable_fence_rejected()->set_term(term_);
    reply.mutable_fence_rejected()->set_cut_step(step);
    reply.mutable_fence_rejected()->set_highest_step(highest);
    reply.mutable_fence_rejected()->set_reason("too late");
    Reply(ps, reply);
  }
  // Writes this ps' half of the files and answers with Written.
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
  // Runs a whole checkpoint without any failure.
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
  std::vector<std::string> TakeEvents() {
    loop_.RunPosted();
    return std::exchange(events_, {});
  }

  uint64_t term_ = kTimeline;  // of the cuts and their answers
  TemporaryDirectory directory_;
  CheckpointStore store_{directory_.path()};
  const CheckpointLayout layout_ = SmallLayout();
  const std::vector<Variable> variables_ = SmallVariables();
  const ShardMap shard_map_ = SmallShardMap();
  FakeLoop loop_;
  std::vector<proto::ControlRequest> sent_;
  std::vector<std::pair<int, proto::Fence>> resent_;       // to a single ps
  std::vector<std::pair<int, proto::ReadCut>> questions_;  // to ps without access to the directory
  std::vector<std::string> events_;
  std::vector<std::string> errors_;
  bool busy_ = false;  // a cut of Begin is in progress
  std::function<void()> on_idle_;
  Wakeup wakeup_{&loop_, [this](Wakeup::Cause) { TakeOutcomes(); }};
  std::unique_ptr<Checkpointer> checkpointer_;
};

}  // namespace shoal
