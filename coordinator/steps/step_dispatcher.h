#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/rpc/event_loop.h"
#include "coordinator/steps/lease_rule.h"

namespace shoal {

// Steps [first, first + count).
struct StepRun {
  uint64_t first = 0;
  uint64_t count = 0;
};

// Hands out the steps of one timeline to whoever asks, lowest first, and knows which are done.
//
//            Take                   Done (from anybody)
//   open ───────────────▶ leased ───────────────▶ done
//    ▲                       │                     ▲
//    └───────────────────────┘                     │
//     Release, Expire, or its worker asked again   └── also straight from open: an applied set;
//                                                      back to open: Undo
//
// A step may be leased to a second worker beside its first (TakeSecond); whoever is done first
// counts, and it is open again when both have lost it.
//
// Leases only save work; that a step is applied once is the ps' business. Plain state machine: no
// threads, no clock of its own.
class StepDispatcher {
 public:
  using WorkerKey = uint64_t;
  static constexpr WorkerKey kNobody = 0;

  struct Options {
    uint64_t total_steps = 0;
    // W of the protocol: no lease from base() + window on.
    uint64_t window_steps = 4096;
    // A worker that holds steps and reports none for this long loses them.
    Time lease_timeout = std::chrono::seconds(60);
    // The strategy's; null: whatever the window allows.
    std::unique_ptr<LeaseRule> rule;
  };
  // All steps below `base`, and those in `done_after_base`, are done.
  StepDispatcher(Options options, uint64_t base, const std::vector<uint64_t>& done_after_base);

  // Leases up to `max_count` steps with adjoining numbers to `worker`; count 0 when there is none
  // to give.
  StepRun Take(WorkerKey worker, uint64_t max_count, Time now);
  // Leases to `worker` as well the lowest step that another one of `slow` alone holds; none: there
  // is no such step, or the worker is late itself.
  std::optional<uint64_t> TakeSecond(WorkerKey worker, const std::set<WorkerKey>& slow, Time now);
  // The worker says that it holds this step already (after a takeover); no effect when it is done
  // or leased.
  void Hold(WorkerKey worker, uint64_t step, Time now);
  // False when it was done before. `worker` is who reports; its remaining leases get a new
  // deadline.
  bool Done(WorkerKey worker, uint64_t step, Time now);
  // These steps, ascending, are not done, whatever was said of them: they are open again.
  void Undo(const std::vector<uint64_t>& steps);
  // The worker is gone or hands back: its steps are open again. Returns how many.
  uint64_t Release(WorkerKey worker);
  // The workers named have begun no step from the one named on, and begin none now. Steps that
  // nobody can have begun, and above which nobody can either, are as if they had never been leased.
  // A worker that Release or Expire took it from may have begun a step, whoever has it now.
  // `end_of_whole`: of the first step taken back, that from which on others are a whole, of which
  // all are needed or none, as those of a round; may be null.
  void TakeBack(const std::map<WorkerKey, uint64_t>& begun_below,
                const std::function<uint64_t(uint64_t first)>& end_of_whole = nullptr);
  // Somebody had begun this step once, perhaps before this dispatcher.
  void WasBegun(uint64_t step);
  // The worker has shown that it is at work: what it holds gets a new deadline.
  void Extend(WorkerKey worker, Time now);
  // Opens the steps of workers whose deadline has passed; returns those workers.
  std::vector<WorkerKey> Expire(Time now);

  // No lease from `limit` on, until it is raised; the cut withholds them.
  void set_limit(uint64_t limit) { limit_ = limit; }
  uint64_t limit() const { return limit_; }

  // First step that is not done.
  uint64_t base() const { return base_; }
  // Steps above base() that are done.
  const std::set<uint64_t>& done_after_base() const { return done_after_base_; }
  // All that are done are below this one.
  uint64_t done_below() const {
    return done_after_base_.empty() ? base_ : *done_after_base_.rbegin() + 1;
  }
  // All steps from here on have never been leased, or were taken back, and none is done.
  uint64_t first_unleased() const { return next_; }
  uint64_t done_count() const { return base_ + done_after_base_.size(); }
  bool finished() const { return base_ == options_.total_steps; }
  uint64_t held(WorkerKey worker) const;
  // What a worker has before it: beside those that it holds the steps that another one was faster
  // with, which it has not reported yet; and since when it has been at the first of them.
  struct Workload {
    uint64_t steps = 0;
    Time begun{};
  };
  Workload WorkloadOf(WorkerKey worker) const;
  // Steps below `end` that are neither done nor leased; `end` not below base().
  uint64_t UnleasedBelow(uint64_t end) const;
  bool Holds(WorkerKey worker, uint64_t step) const {
    const auto holder = holders_.find(worker);
    return holder != holders_.end() && holder->second.steps.contains(step);
  }
  uint64_t total_steps() const { return options_.total_steps; }
  uint64_t leased_count() const { return leased_.size(); }
  uint64_t leased_again() const { return leased_again_; }
  // Steps that a second worker was given.
  uint64_t leased_twice() const { return leased_twice_; }

 private:
  struct Holder {
    std::set<uint64_t> steps;
    std::set<uint64_t> late;  // done by another, and not reported by this one
    Time deadline{};
    Time begun{};  // the lowest of all these, at the earliest
  };
  void Lease(WorkerKey worker, uint64_t step, Time now);
  void AddTo(Holder* holder, uint64_t step, Time now) const;
  // It is done, by the reporter, if by nobody else.
  void TakeFrom(WorkerKey holder, uint64_t step, WorkerKey reporter);
  bool MayLease(uint64_t step, bool came_back) const {
    return options_.rule == nullptr || options_.rule->MayLease({step, base_, came_back});
  }
  void AdvanceBase();

  const Options options_;
  uint64_t base_ = 0;
  std::set<uint64_t> done_after_base_;
  uint64_t next_ = 0;                     // first step that is neither done, leased nor in open_
  std::set<uint64_t> open_;               // below next_, to be leased again
  uint64_t came_back_below_ = 0;          // all that workers have lost or handed back
  std::map<uint64_t, WorkerKey> leased_;  // step -> holder
  std::map<uint64_t, WorkerKey> second_;  // of those, step -> the other holder
  std::map<WorkerKey, Holder> holders_;
  uint64_t limit_;
  uint64_t leased_again_ = 0;
  uint64_t leased_twice_ = 0;
};

}  // namespace shoal
