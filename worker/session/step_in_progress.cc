#include "worker/session/step_in_progress.h"

#include <algorithm>
#include <utility>

namespace shoal {

void StepInProgress::Begin(uint64_t step) {
  number_ = step;
  outcome_.reset();
  applied_ = false;
}

void StepInProgress::CountAsBegun(uint64_t step) {
  begun_below_ = std::max(begun_below_, step + 1);
}

bool StepInProgress::MayPush(const ChunkId& chunk) {
  if (halted_ && !begun()) {
    held_back_.push_back(chunk);
    return false;
  }
  begun_below_ = std::max(begun_below_, number_ + 1);
  return true;
}

std::vector<ChunkId> StepInProgress::EndHalt() {
  halted_ = false;
  return std::exchange(held_back_, {});
}

void StepInProgress::Reset() {
  halted_ = false;
  held_back_.clear();
  begun_below_ = 0;
}

proto::StepDone StepInProgress::Report(Time took) const {
  proto::StepDone done;
  done.set_step(number_);
  done.set_examples(static_cast<uint32_t>(outcome_->examples));
  done.set_loss_sum(outcome_->loss_sum);
  for (const double sum : outcome_->metric_sums) done.add_metric_sums(sum);
  done.set_input_wait_us(outcome_->input_wait_us);
  done.set_compute_us(outcome_->compute_us);
  const uint64_t whole_us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
  const uint64_t own_us = outcome_->input_wait_us + outcome_->compute_us;
  done.set_exchange_us(whole_us > own_us ? whole_us - own_us : 0);
  return done;
}

}  // namespace shoal
