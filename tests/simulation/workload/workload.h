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
#include "tests/simulation/workload/fault.h"

namespace shoal {

// The input of a simulation: the cluster, the job and all faults. Plain data, drawn from a seed.
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
  Time step_time{};     // max time of a gradient
  Time base_latency{};  // max time of a message
  Time file_latency{};  // max time of a file operation
  std::vector<Fault> faults;
  // Nothing is lost without a fault, and the disk accepts writes. So a ps that may leave has lost
  // nothing, either.
  bool orderly = false;

  // Where the sums of ExpectedSums are: in the values, which SGD adds up; in the slot of an SGD
  // with momentum 1; as squares, in the slot of an Adagrad, which no learning rate affects; or in
  // the two slots of a DelayedNesterov with momentum 1, whose buffer holds the sums since the last
  // momentum update.
  enum class SumsIn { kValues, kMomentum, kSquares, kDelayed };
  SumsIn sums_in = SumsIn::kValues;
  // Returns the slots with the sums, for variables that the optimizer updates. Empty: the values
  // hold the sums.
  std::vector<std::string> sums_slots() const;
  // Returns the sum at an element of these slots.
  float SumAt(const std::vector<std::span<const float>>& slots, size_t element) const;
  // For kDelayed: the number of differences per momentum update, a power of two.
  uint64_t momentum_every = 1;

  // About one in this many steps overflows float16 (ExpectedSums::Overflows); 0: none.
  uint64_t overflows_one_in = 0;

  StepPlan plan() const { return BatchPlanOf(job, training_examples).steps(); }
  // Returns nullopt if each step is an update.
  std::optional<RoundPlan> rounds() const;

  // Returns the test loss after an epoch, for a job with callbacks: a small integer.
  double TestLoss(uint64_t epoch) const;
  // The expected end of the job, with its callbacks computed by Keras's formulas.
  struct Ending {
    uint64_t last_step = 0;             // all steps below it are done, all others never
    uint64_t result_step = 0;           // the model has the values of this cut
    std::optional<uint64_t> best_step;  // its cut is kept
  };
  Ending ending;
  // The same with these test losses, by epoch, instead of TestLoss.
  Ending EndingWith(const std::map<uint64_t, double>& losses) const;

  // For kChangeJob: the same workload with the next job. That has more epochs, or another seed and
  // another run directory.
  std::shared_ptr<const Workload> next;

  // Returns when the last fault ends.
  Time FaultsEnd() const;
  // Returns whether new certificates are the only faults, and each stream has the time that it
  // needs. This must then cost nothing.
  bool OnlyCertificates() const;
};

}  // namespace shoal
