#include "tests/simulation/simulation.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/model/keras_model.h"
#include "tests/simulation/checks/checks.h"
#include "tests/simulation/expected_sums.h"
#include "tests/simulation/simulated/simulated_cluster.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "tests/simulation/simulated/simulated_job.h"
#include "tests/simulation/simulated/simulated_network.h"
#include "tests/simulation/trace_log.h"
#include "tests/simulation/workload/describe_workload.h"
#include "tests/simulation/workload/draw_workload.h"
#include "tests/simulation/world.h"

namespace shoal {
namespace {

// When nothing goes wrong any more, the job is done within this time. The longest single wait is
// for a cut that is not complete: 60 s and two lease timeouts.
constexpr Time kPatience = std::chrono::seconds(240);
constexpr uint64_t kMaxEvents = 4'000'000;

}  // namespace

SimulationResult Simulate(uint64_t seed, bool tracing) {
  const Workload workload = DrawWorkload(seed);
  World world(seed, tracing);
  const TraceLog log(&world);
  world.Trace("workload", Describe(workload));
  const absl::StatusOr<KerasModel> model = ParseKerasModel(workload.job.model_json);
  if (!model.ok()) return {.failure = model.status().ToString()};
  const auto sums_of = [&model](const Workload& job) {
    return ExpectedSums({.seed = job.sums_seed,
                         .variables = model->graph.variables(),
                         .steps = job.plan().total_steps(),
                         .rounds = job.rounds(),
                         .of_squares = job.sums_in == Workload::SumsIn::kSquares,
                         .overflows_one_in = job.overflows_one_in,
                         .batches_per_step = job.job.strategy.batches_per_step});
  };
  const ExpectedSums sums = sums_of(workload);
  std::optional<ExpectedSums> next_sums;
  std::vector<SimulatedJob> jobs = {{&workload, &sums}};
  if (workload.next != nullptr) {
    next_sums.emplace(sums_of(*workload.next));
    jobs.push_back({workload.next.get(), &*next_sums});
  }
  SimulatedDisk disk;
  Checks checks(&world, &disk, jobs.front());
  disk.on_renamed = [&checks](const std::string& path) { checks.checkpoints().OnRenamed(path); };
  SimulatedNetwork network(&world, &checks);
  const Time start = world.Now();
  {
    SimulatedCluster cluster(&world, &network, &disk, &checks, jobs);
    cluster.StartAll();
    for (const Fault& fault : workload.faults) {
      world.After(fault.at, [&cluster, &fault] { cluster.Strike(fault); });
    }
    const Time end = world.Now() + workload.FaultsEnd() + kPatience;
    while (!cluster.job_done() && !world.failure().has_value()) {
      if (!world.RunNext() || world.Now() > end || world.events() > kMaxEvents) {
        world.Fail("the job is not done");
      }
    }
    if (cluster.job_done()) checks.OnJobDone(cluster.run_dir());
  }
  return {.failure = world.failure().value_or(""),
          .trace = world.trace(),
          .events = world.events(),
          .simulated = world.Now() - start};
}

}  // namespace shoal
