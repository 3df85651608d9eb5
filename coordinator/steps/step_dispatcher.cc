#include "coordinator/steps/step_dispatcher.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shoal {

StepDispatcher::StepDispatcher(Options options, uint64_t base,
                               const std::vector<uint64_t>& done_after_base)
    : options_(std::move(options)),
      base_(base),
      done_after_base_(done_after_base.begin(), done_after_base.end()),
      next_(base),
      limit_(options_.total_steps) {
  std::erase_if(done_after_base_, [this](uint64_t step) {
    return step < base_ || step >= options_.total_steps || step - base_ >= options_.window_steps;
  });
  // Every step below the highest done one was leased once. The gaps are open.
  if (!done_after_base_.empty()) {
    next_ = *done_after_base_.rbegin() + 1;
    for (uint64_t step = base_; step < next_; ++step) {
      if (!done_after_base_.contains(step)) open_.insert(step);
    }
  }
  AdvanceBase();
}

StepRun StepDispatcher::Take(WorkerKey worker, uint64_t max_count, Time now) {
  const uint64_t end = std::min({options_.total_steps, limit_, base_ + options_.window_steps});
  StepRun run;
  if (!open_.empty()) {
    run.first = *open_.begin();
    while (run.count < max_count && run.first + run.count < end &&
           open_.contains(run.first + run.count) && MayLease(run.first + run.count, true)) {
      open_.erase(run.first + run.count);
      Lease(worker, run.first + run.count, now);
      ++run.count;
    }
    leased_again_ += run.count;
    return run;
  }
  run.first = next_;
  while (run.count < max_count && next_ < end && MayLease(next_, false)) {
    Lease(worker, next_, now);
    ++next_;
    ++run.count;
  }
  return run;
}

std::optional<uint64_t> StepDispatcher::TakeSecond(WorkerKey worker,
                                                   const std::set<WorkerKey>& slow, Time now) {
  if (const auto own = holders_.find(worker); own != holders_.end() && !own->second.late.empty())
    return std::nullopt;
  std::optional<uint64_t> lowest;
  for (const WorkerKey key : slow) {
    const auto holder = holders_.find(key);
    if (key == worker || holder == holders_.end()) continue;
    const std::set<uint64_t>& steps = holder->second.steps;
    const auto step =
        std::ranges::find_if(steps, [this](uint64_t each) { return !second_.contains(each); });
    if (step == steps.end() || (lowest.has_value() && *lowest < *step)) continue;
    if (MayLease(*step, /*came_back=*/true)) lowest = *step;
  }
  if (!lowest.has_value()) return std::nullopt;
  second_[*lowest] = worker;
  AddTo(&holders_[worker], *lowest, now);
  ++leased_twice_;
  return lowest;
}

void StepDispatcher::Hold(WorkerKey worker, uint64_t step, Time now) {
  if (step < base_ || step >= options_.total_steps || done_after_base_.contains(step)) return;
  if (step >= base_ + options_.window_steps || leased_.contains(step)) return;
  // The worker may have got this step before an earlier one was undone. It would wait for that one
  // in vain.
  if (!MayLease(step, /*came_back=*/true)) return;
  for (; next_ <= step; ++next_) open_.insert(next_);
  open_.erase(step);
  Lease(worker, step, now);
}

void StepDispatcher::Move(WorkerKey from, WorkerKey to, const std::vector<uint64_t>& steps) {
  const auto former = holders_.find(from);
  if (former == holders_.end()) return;
  Holder& holder = holders_[to];
  holder.late = std::exchange(former->second.late, {});
  holder.deadline = former->second.deadline;
  holder.begun = former->second.begun;
  for (const uint64_t step : steps) {
    if (former->second.steps.erase(step) == 0) continue;
    holder.steps.insert(step);
    WorkerKey& first = leased_[step];
    (first == from ? first : second_[step]) = to;
  }
}

bool StepDispatcher::Done(WorkerKey worker, uint64_t step, Time now) {
  Extend(worker, now);
  // Also if another worker was faster: this worker has begun its next step.
  if (const auto reporter = holders_.find(worker); reporter != holders_.end()) {
    reporter->second.begun = now;
    reporter->second.late.erase(step);
  }
  if (step < base_ || step >= options_.total_steps || done_after_base_.contains(step)) return false;
  const auto lease = leased_.find(step);
  // No step this far was ever leased, unless base() has gone back. The report is wrong.
  if (step >= base_ + options_.window_steps && lease == leased_.end()) return false;
  if (lease != leased_.end()) {
    TakeFrom(lease->second, step, worker);
    leased_.erase(lease);
  }
  if (const auto second = second_.extract(step)) TakeFrom(second.mapped(), step, worker);
  if (options_.rule != nullptr) options_.rule->Done(step);
  for (; next_ <= step; ++next_) open_.insert(next_);
  open_.erase(step);
  done_after_base_.insert(step);
  AdvanceBase();
  return true;
}

void StepDispatcher::Undo(const std::vector<uint64_t>& steps) {
  if (steps.empty()) return;
  for (; base_ > steps.front(); --base_) done_after_base_.insert(base_ - 1);
  for (const uint64_t step : steps) {
    if (done_after_base_.erase(step) > 0) open_.insert(step);
  }
  // Some ps may have applied them.
  came_back_below_ = std::max(came_back_below_, steps.back() + 1);
}

uint64_t StepDispatcher::Release(WorkerKey worker) {
  auto holder = holders_.find(worker);
  if (holder == holders_.end()) return 0;
  uint64_t opened = 0;
  for (const uint64_t step : holder->second.steps) {
    came_back_below_ = std::max(came_back_below_, step + 1);
    if (const auto second = second_.extract(step)) {
      if (leased_[step] == worker) leased_[step] = second.mapped();
      continue;
    }
    leased_.erase(step);
    open_.insert(step);
    ++opened;
  }
  holders_.erase(holder);
  return opened;
}

void StepDispatcher::Revoke(const std::map<WorkerKey, uint64_t>& begun_below,
                            const std::function<uint64_t(uint64_t)>& end_of_whole) {
  uint64_t first = std::max(done_below(), came_back_below_);
  if (!open_.empty()) first = std::max(first, *open_.rbegin() + 1);
  for (const auto& [step, worker] : leased_) {
    const auto told = begun_below.find(worker);
    if (told == begun_below.end() || step < told->second || second_.contains(step))
      first = std::max(first, step + 1);
  }
  if (end_of_whole != nullptr) first = std::min(next_, end_of_whole(first));
  for (auto lease = leased_.lower_bound(first); lease != leased_.end();
       lease = leased_.erase(lease)) {
    holders_[lease->second].steps.erase(lease->first);
    if (options_.rule != nullptr) options_.rule->Done(lease->first);
  }
  next_ = first;
}

void StepDispatcher::WasBegun(uint64_t step) {
  if (step >= options_.total_steps || step >= base_ + options_.window_steps) return;
  for (; next_ <= step; ++next_) open_.insert(next_);
}

void StepDispatcher::Extend(WorkerKey worker, Time now) {
  const auto holder = holders_.find(worker);
  if (holder != holders_.end()) holder->second.deadline = now + options_.lease_timeout;
}

std::vector<StepDispatcher::WorkerKey> StepDispatcher::Expire(Time now) {
  std::vector<WorkerKey> expired;
  for (const auto& [worker, holder] : holders_) {
    if (!holder.steps.empty() && holder.deadline <= now) expired.push_back(worker);
  }
  for (const WorkerKey worker : expired) Release(worker);
  return expired;
}

uint64_t StepDispatcher::held(WorkerKey worker) const {
  auto holder = holders_.find(worker);
  return holder == holders_.end() ? 0 : holder->second.steps.size();
}

StepDispatcher::Workload StepDispatcher::WorkloadOf(WorkerKey worker) const {
  const auto holder = holders_.find(worker);
  if (holder == holders_.end()) return {};
  return {holder->second.steps.size() + holder->second.late.size(), holder->second.begun};
}

uint64_t StepDispatcher::UnleasedBelow(uint64_t end) const {
  const auto done = std::distance(done_after_base_.begin(), done_after_base_.lower_bound(end));
  const auto leased = std::distance(leased_.begin(), leased_.lower_bound(end));
  return end - base_ - static_cast<uint64_t>(done + leased);
}

void StepDispatcher::Lease(WorkerKey worker, uint64_t step, Time now) {
  AddTo(&holders_[worker], step, now);
  leased_[step] = worker;
  if (options_.rule != nullptr) options_.rule->Leased(step);
}

// The clock of a lease starts when the worker has no older work.
void StepDispatcher::AddTo(Holder* holder, uint64_t step, Time now) const {
  if (holder->steps.empty()) holder->deadline = now + options_.lease_timeout;
  if (holder->steps.empty() && holder->late.empty()) holder->begun = now;
  holder->steps.insert(step);
}

void StepDispatcher::TakeFrom(WorkerKey holder, uint64_t step, WorkerKey reporter) {
  holders_[holder].steps.erase(step);
  if (holder != reporter) holders_[holder].late.insert(step);
}

void StepDispatcher::AdvanceBase() {
  while (!done_after_base_.empty() && *done_after_base_.begin() == base_) {
    done_after_base_.erase(done_after_base_.begin());
    ++base_;
  }
  next_ = std::max(next_, base_);
}

}  // namespace shoal
