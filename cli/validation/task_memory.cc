#include "cli/validation/task_memory.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/optimizer/optimizer.h"
#include "common/sharding/shard_map.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/model_runner.h"
#include "worker/job/job_model.h"
#include "worker/step/worker_memory.h"

namespace shoal {
namespace {

// Asks a runner for the memory of a batch, always one of the cpu backend.
absl::StatusOr<MemoryNeeds> WorkerNeeds(const Job& job, const KerasModel& model, uint64_t examples,
                                        const DatasetMemory& data, const ShardMap& shard_map) {
  SHOAL_ASSIGN_OR_RETURN(const JobModel computed, JobModel::Of(job, model));
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> runner,
                         CreateModelRunner(computed.RunnerOptions()));
  return WorkerMemoryOf(job, examples, data, shard_map, runner.get());
}

}  // namespace

absl::StatusOr<std::vector<MemoryNeeds>> MemoryOfTasks(const Job& job, const KerasModel& model,
                                                       TaskCounts counts,
                                                       std::optional<uint64_t> examples,
                                                       const DatasetMemory& data) {
  const std::vector<Variable>& variables = model.graph.variables();
  SHOAL_ASSIGN_OR_RETURN(const ShardMap shard_map, ShardMapOf(job, variables, counts.ps));
  SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakePsOptimizer(job));
  const auto slots = static_cast<int>(optimizer->slot_names().size());
  std::vector<MemoryNeeds> memory = {CoordinatorMemory()};
  for (int i = 0; i < counts.ps; ++i) {
    memory.push_back(PsMemory(i, shard_map.ps(i), slots, job.strategy.window_steps, counts.workers,
                              job.strategy.sync() && job.strategy.gradients_per_update == 0
                                  ? static_cast<uint64_t>(counts.workers)
                                  : job.strategy.gradients_per_update));
  }
  SHOAL_ASSIGN_OR_RETURN(memory.emplace_back(),
                         WorkerNeeds(job, model, examples.value_or(0), data, shard_map));
  return memory;
}

absl::StatusOr<MemoryNeeds> MemoryOfAllTasks(const Job& job, const KerasModel& model,
                                             TaskCounts counts, std::optional<uint64_t> examples,
                                             const DatasetMemory& data) {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<MemoryNeeds> tasks,
                         MemoryOfTasks(job, model, counts, examples, data));
  MemoryNeeds all{.task = "this training"};
  uint64_t programs = 0;
  for (const MemoryNeeds& task : tasks) {
    const bool worker = &task == &tasks.back();
    const uint64_t count = worker ? counts.workers : 1;
    const std::string what = count > 1 ? absl::StrCat(count, " workers") : task.task;
    all.held.push_back({what, count * (task.held_bytes() - task.program_bytes())});
    all.temporary.push_back({what, count * (task.max_bytes() - task.held_bytes())});
    programs += count * task.program_bytes();
  }
  all.temporary.push_back({"the programs", programs});
  return all;
}

}  // namespace shoal
