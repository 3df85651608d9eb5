#include "tests/simulation/workload/draw_workload.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "tests/simulation/random.h"
#include "tests/simulation/workload/draw_faults.h"
#include "tests/simulation/workload/draw_job.h"
#include "tests/simulation/workload/draw_strategy.h"

namespace shoal {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Gives the job short epochs and evaluates most of them. A cut is open at nearly every moment then.
void MakeOrderly(Random& random, Workload* workload) {
  Job& job = workload->job;
  workload->orderly = true;
  workload->training_examples = job.batch_size * random.Between(3, 25);
  job.epochs = random.Between(3, 10);
  job.steps = 0;
  if (!random.OneIn(4)) {
    job.test = {.images = "/simulated/test", .labels = "/simulated/tests"};
    workload->test_examples = random.Between(1, 40);
  }
  if (random.Coin()) workload->blind_ps = static_cast<int>(random.Between(1, workload->ps));
}

// Plans another job for a third of the workloads without callbacks whose tasks may die. A job with
// more epochs resumes the former one. Any other job starts anew, in another run directory.
void DrawChange(Random& random, Time undisturbed, Workload* workload) {
  if (workload->orderly || !workload->job.callbacks.empty() || !random.OneIn(3)) return;
  workload->faults.push_back({.kind = Fault::Kind::kChangeJob,
                              .at = random.Between(Time(1000), undisturbed),
                              .duration = random.Between(milliseconds(1), seconds(3))});
  // A coordinator reads the job from this text. The two jobs then differ only in the lines below.
  absl::StatusOr<Job> read = ParseResolvedJob(workload->job.ResolvedText(), "the job");
  SHOAL_CHECK(read.ok(), read.status().ToString());
  workload->job = *std::move(read);
  Workload next = *workload;
  if (next.job.epochs > 0 && random.Coin()) {
    next.job.epochs += random.Between(1, 3);
  } else {
    ++next.job.seed;
    next.sums_seed = random.Next();
    next.run_dir = "/run2";
  }
  next.ending = next.EndingWith({});
  workload->next = std::make_shared<const Workload>(std::move(next));
}

}  // namespace

Workload DrawWorkload(uint64_t seed) {
  Random random(seed * 0x2545f4914f6cdd1d + 1);
  Workload workload;
  workload.seed = workload.sums_seed = seed;
  workload.ps = static_cast<int>(random.Between(1, 3));
  workload.workers = static_cast<int>(random.Between(1, 4));
  workload.unlisted_workers =
      random.OneIn(4) ? static_cast<int>(random.Below(workload.workers)) : 0;
  workload.blind_ps = random.OneIn(6) ? static_cast<int>(random.Between(1, workload.ps)) : 0;
  workload.training_examples = random.Between(10, 120);
  workload.job = DrawJob(random, seed, workload.training_examples, &workload.sums_in);
  workload.test_examples = workload.job.test.empty() ? 0 : random.Between(1, 12);
  workload.step_time = random.Between(milliseconds(2), milliseconds(150));
  workload.base_latency = random.Between(microseconds(50), milliseconds(3));
  workload.file_latency = random.Between(microseconds(20), milliseconds(4));
  // Each of these has a Random of its own, so that a change of one leaves the draws of the others.
  if (Random orderly(seed * 0x9e3779b97f4a7c15 + 2); orderly.OneIn(4))
    MakeOrderly(orderly, &workload);
  if (Random callbacks(seed * 0xa24baed4963ee407 + 4); callbacks.OneIn(4))
    DrawCallbacks(callbacks, &workload);
  Random strategy(seed * 0xbf58476d1ce4e5b9 + 5);
  DrawStrategy(strategy, &workload);
  Random local(seed * 0xc4ceb9fe1a85ec53 + 8);
  DrawLocal(local, &workload);
  Random fragments(seed * 0xe7037ed1a0b428db + 10);
  DrawFragments(fragments, &workload);
  Random rates(seed * 0xff51afd7ed558ccd + 7);
  DrawLearningRates(rates, &workload);
  Random warm_up(seed * 0x9fb21c651e98df25 + 9);
  DrawWarmUp(warm_up, &workload);
  Random compression(seed * 0x94d049bb133111eb + 6);
  DrawCompression(compression, &workload);
  // Has the numbers of `fragments`. No workload uses both: only local strategies have fragments.
  Random overflows(seed * 0xe7037ed1a0b428db + 10);
  DrawOverflows(overflows, &workload);
  workload.ending = workload.EndingWith({});
  // The job takes about this long without faults.
  const Time undisturbed = milliseconds(300) + workload.plan().total_steps() * workload.step_time /
                                                   (2 * static_cast<int64_t>(workload.workers));
  DrawFaults(random, undisturbed, &workload);
  Random change(seed * 0x8ebc6af09c88c6e3 + 11);
  DrawChange(change, undisturbed, &workload);
  Random certificates(seed * 0x2127599bf4325c37 + 12);
  DrawNewCertificates(certificates, undisturbed, &workload);
  std::stable_sort(workload.faults.begin(), workload.faults.end(),
                   [](const Fault& a, const Fault& b) { return a.at < b.at; });
  return workload;
}

}  // namespace shoal
