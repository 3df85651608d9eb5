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

// Leases the steps of one timeline to workers that ask, lowest first, and knows which are done.
//
//            Take                   Done (from any worker)
//   open ───────────────▶ leased ───────────────▶ done
//    ▲                       │                     ▲
//    └───────────────────────┘                     │
//     Release, Expire, or its worker asked again   └── also straight from open: an applied set;
//                                                      back to open: Undo
//
// A second worker may get a lease on a leased step (TakeSecond). The first report of the two
// counts. The step is open again when both workers have lost it.
//
// Leases only save work. The ps ensure that each step is applied once. Plain state machine: no
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
    // The strategy's rule; null: only the window limits leases.
    std::unique_ptr<LeaseRule> rule;
  };
  // All steps below `base`, and those in `done_after_base`, are done.
  StepDispatcher(Options options, uint64_t base, const std::vector<uint64_t>& done_after_base);

  // Leases at most `max_count` consecutive steps to `worker`. Returns count 0 if no step is
  // available.
  StepRun Take(WorkerKey worker, uint64_t max_count, Time now);
  // Leases a second time, to `worker`, the lowest step that another worker of `slow` holds alone.
  // Returns none if there is no such step, or if `worker` itself is late.
  std::optional<uint64_t> TakeSecond(WorkerKey worker, const std::set<WorkerKey>& slow, Time now);
  // The worker already holds this step, by its own report after a takeover. Ignores a step that is
  // done, leased, outside the window, or not allowed by the rule.
  void Hold(WorkerKey worker, uint64_t step, Time now);
  // The worker `from` goes on as `to`, which holds nothing yet. Its leases of `steps` become leases
  // of `to`, with their deadline. `from` keeps the others, and the caller releases them.
  void Move(WorkerKey from, WorkerKey to, const std::vector<uint64_t>& steps);
  // `worker` reports the step as done. Returns false if it was done before, or cannot be done. The
  // remaining leases of `worker` get a new deadline.
  bool Done(WorkerKey worker, uint64_t step, Time now);
  // Opens these steps again, although they were reported as done. Requires ascending order.
  void Undo(const std::vector<uint64_t>& steps);
  // The worker is gone or hands back its steps: opens those that no other worker holds. Returns
  // how many it has opened.
  uint64_t Release(WorkerKey worker);
  // Revokes the highest leases, down to the first step that no worker can have begun or passed.
  // They are then as if they had never been leased. `begun_below`, by worker: it has begun no step
  // from this one on, and begins none now. Keeps the leases of all other workers, and every step
  // that Release or Expire took from a worker: that worker may have begun it.
  // `end_of_whole`, may be null: given the first step to revoke, returns the end of the group of
  // steps, such as a round, that must stay whole. Leases are revoked from there on.
  void Revoke(const std::map<WorkerKey, uint64_t>& begun_below,
              const std::function<uint64_t(uint64_t first)>& end_of_whole = nullptr);
  // A worker had begun this step once, perhaps before this dispatcher existed. The step and all
  // unleased ones below it count as open, to be leased again.
  void WasBegun(uint64_t step);
  // The worker has shown that it is at work: its leases get a new deadline.
  void Extend(WorkerKey worker, Time now);
  // Opens the steps of workers whose deadline has passed; returns those workers.
  std::vector<WorkerKey> Expire(Time now);

  // Leases no step from `limit` on until the limit is raised. The cut sets it.
  void set_limit(uint64_t limit) { limit_ = limit; }
  uint64_t limit() const { return limit_; }

  // The first step that is not done.
  uint64_t base() const { return base_; }
  // Steps above base() that are done.
  const std::set<uint64_t>& done_after_base() const { return done_after_base_; }
  // One above the highest done step.
  uint64_t done_below() const {
    return done_after_base_.empty() ? base_ : *done_after_base_.rbegin() + 1;
  }
  // No step from here on is done, and none was ever leased, apart from revoked leases.
  uint64_t first_unleased() const { return next_; }
  uint64_t done_count() const { return base_ + done_after_base_.size(); }
  bool finished() const { return base_ == options_.total_steps; }
  uint64_t held(WorkerKey worker) const;
  // The work that a worker has not reported yet: the steps that it holds, and those that another
  // worker has done faster.
  struct Workload {
    uint64_t steps = 0;
    Time begun{};  // when it began the first of them, at the earliest
  };
  Workload WorkloadOf(WorkerKey worker) const;
  // Number of steps below `end` that are neither done nor leased. Requires `end` >= base().
  uint64_t UnleasedBelow(uint64_t end) const;
  bool Holds(WorkerKey worker, uint64_t step) const {
    const auto holder = holders_.find(worker);
    return holder != holders_.end() && holder->second.steps.contains(step);
  }
  uint64_t total_steps() const { return options_.total_steps; }
  uint64_t leased_count() const { return leased_.size(); }
  uint64_t leased_again() const { return leased_again_; }
  // Number of leases to a second worker.
  uint64_t leased_twice() const { return leased_twice_; }

 private:
  struct Holder {
    std::set<uint64_t> steps;
    std::set<uint64_t> late;  // done by another worker, not reported by this one
    Time deadline{};
    Time begun{};  // when it began the lowest of all these, at the earliest
  };
  void Lease(WorkerKey worker, uint64_t step, Time now);
  void AddTo(Holder* holder, uint64_t step, Time now) const;
  // `reporter` has done the step: removes it from `holder`, and counts it as late there if the two
  // differ.
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
  uint64_t came_back_below_ = 0;          // above all steps that workers have lost or handed back
  std::map<uint64_t, WorkerKey> leased_;  // step -> holder
  std::map<uint64_t, WorkerKey> second_;  // step -> second holder, of steps in leased_
  std::map<WorkerKey, Holder> holders_;
  uint64_t limit_;
  uint64_t leased_again_ = 0;
  uint64_t leased_twice_ = 0;
};

}  // namespace shoal
