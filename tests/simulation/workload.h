#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/job/job_strategy.h"
#include "common/rpc/event_loop.h"
#include "common/step_plan/round_plan.h"
#include "common/step_plan/step_plan.h"

namespace shoal {

// Something that goes wrong.
struct Fault {
  enum class Kind {
    kKill,                 // kill -9 of a task, at that moment
    kKillAfterCallbacks,   // or when it has run `count` more callbacks
    kKillAtFileOperation,  // or in its `count`th operation on files from then on
    kFreeze,               // SIGSTOP for `duration`
    kReplace,              // frozen, and another process takes its place; goes on after `duration`
    kSecond,               // another process takes its place, and it does not stop
    kBreakStreams,         // all streams of a task
    kCut,                  // nothing gets from `task` to `other` for `duration`
    kCutBoth,              // nor back
    kSlowLinks,            // messages from and to a task take up to `latency`
    kSlowReader,           // a task takes in one message of a stream in up to `latency`
    kDrain,                // SIGTERM
    kDrainAll,             // to everything at once
    kPowerLoss,            // everything with the disk dies, and loses what was not synced
    kDiskFull,
    kDiskReadOnly,
    kDiskSlow,    // an operation takes up to `latency`
    kDamage,      // a byte of the newest checkpoint changes, if there is another one
    kRestartAll,  // all, or all but the ps, die; back with `count` ps
    kChangeJob,   // coordinator and ps die; back with the job of Workload::next
  };
  Kind kind = Kind::kKill;
  Time at{};         // since the start
  std::string task;  // "chief", "ps0", "worker1"
  std::string other;
  Time duration{};  // until it is over; of a kill: until the task is started again
  Time latency{};
  uint64_t count = 0;
};

// What is simulated: the cluster, the job and all that goes wrong. Plain data, drawn from a seed.
struct Workload {
  uint64_t seed = 0;
  int ps = 1;
  int workers = 1;
  int unlisted_workers = 0;  // the last ones have no index in the cluster spec
  int blind_ps = 0;          // the first ones do not see the coordinator's disk
  Job job;
  std::string run_dir = "/run";
  uint64_t sums_seed = 0;  // of ExpectedSums
  uint64_t training_examples = 0;
  uint64_t test_examples = 0;
  Time step_time{};     // a gradient takes up to this long
  Time base_latency{};  // a message takes up to this long
  Time file_latency{};  // an operation on files takes up to this long
  std::vector<Fault> faults;
  // Nothing is lost of its own accord, and files can be written: a ps that may leave has lost
  // nothing either.
  bool orderly = false;

  // Where the sums of ExpectedSums are: in the values, which SGD adds up; in the slot of an SGD
  // whose momentum is 1; as squares, in that of an Adagrad, which no learning rate touches; or in
  // the two slots of a DelayedNesterov of momentum 1, what came since the momentum in its buffer.
  enum class SumsIn { kValues, kMomentum, kSquares, kDelayed };
  SumsIn sums_in = SumsIn::kValues;
  // The slots in which they are, where the ps' optimizer updates a variable; none: in the values.
  std::vector<std::string> sums_slots() const;
  // What they are at an element of these slots.
  float SumAt(const std::vector<std::span<const float>>& slots, size_t element) const;
  // Of kDelayed: the differences that make one update of the momentum, a power of two.
  uint64_t momentum_every = 1;

  // Of so many steps about one overflows float16 (ExpectedSums::Overflows); 0: none does.
  uint64_t overflows_one_in = 0;

  StepPlan plan() const { return BatchPlanOf(job, training_examples).steps(); }
  // None where each step is an update.
  std::optional<RoundPlan> rounds() const;

  // What the test set comes to after an epoch, of a job with callbacks: a small integer.
  double TestLoss(uint64_t epoch) const;
  // How it is to end, callbacks told after Keras's formulas.
  struct Ending {
    uint64_t last_step = 0;             // all below it are done, and none from it on ever is
    uint64_t result_step = 0;           // the model has the values of that cut
    std::optional<uint64_t> best_step;  // whose cut is kept
  };
  Ending ending;
  // The same where the test set came to these, by epoch, in place of TestLoss.
  Ending EndingWith(const std::map<uint64_t, double>& losses) const;

  // With a kChangeJob: the same with the job that takes this one's place. It has more epochs, or
  // another seed and another run directory.
  std::shared_ptr<const Workload> next;

  // Of the last fault.
  Time FaultsEnd() const;
};

Workload DrawWorkload(uint64_t seed);

// For the trace.
std::string Describe(const Workload& workload);

}  // namespace shoal
