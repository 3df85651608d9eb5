#include "cli/validation.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/format_bytes.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/job/optimizer_slots.h"
#include "common/sharding/chunk_limits.h"
#include "common/sharding/shard_map.h"
#include "common/step_plan/step_plan.h"
#include "worker/compute/model_runner.h"
#include "worker/loss_attributes.h"
#include "worker/worker_memory.h"

namespace shoal {
namespace {

constexpr int64_t kBytesPerValue = sizeof(float);

// Bytes of the shards of one ps, without the alignment between them.
JobNeeds::Ps NeedsOfPs(const PsShards& shards, const std::vector<Variable>& variables,
                       int64_t slots) {
  JobNeeds::Ps needs;
  needs.chunks = static_cast<int64_t>(shards.chunks.size());
  for (const Chunk& chunk : shards.chunks) {
    for (const ChunkPiece& piece : chunk.pieces) {
      needs.variable_bytes += piece.size * kBytesPerValue;
      if (variables[piece.variable].trainable)
        needs.slot_bytes += piece.size * kBytesPerValue * slots;
    }
  }
  return needs;
}

// A runner knows how a batch lies in memory. Only the cpu backend's is asked.
absl::StatusOr<MemoryNeeds> WorkerNeeds(const ValidatedJob& validated, uint64_t examples,
                                        int ps_count) {
  SHOAL_ASSIGN_OR_RETURN(const LossAttributes loss, LossAttributesOf(validated.job.loss));
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> runner,
                         ModelRunner::Create({.model = validated.model.graph, .loss = loss}));
  return WorkerMemoryOf(validated.job, examples, ps_count, runner.get());
}

void Append(const absl::Status& status, std::string* text) {
  if (!status.ok()) absl::StrAppend(text, text->empty() ? "" : "\n", std::string(status.message()));
}

}  // namespace

absl::StatusOr<ValidatedJob> ValidateFiles(const std::string& cluster_spec_file,
                                           const std::string& job_file,
                                           const std::vector<JobOverride>& overrides) {
  ValidatedJob validated;
  std::string errors;
  if (ClusterSpecGiven(cluster_spec_file)) {
    absl::StatusOr<ClusterSpec> cluster = LoadClusterSpec(cluster_spec_file, /*need_task=*/false);
    Append(cluster.status(), &errors);
    if (cluster.ok()) validated.cluster = *std::move(cluster);
  }
  absl::StatusOr<Job> job =
      LoadJob(job_file, /*check_data=*/false, overrides, &validated.overridden);
  Append(job.status(), &errors);
  if (job.ok()) {
    absl::StatusOr<KerasModel> model = ParseKerasModel(job->model_json);
    // A model inside the job file has no path of its own.
    const std::string source =
        job->model_path.empty() ? absl::StrCat(job_file, ": $.model") : job->model_path;
    absl::Status sound = model.status();
    if (sound.ok()) {
      validated.model = *std::move(model);
      sound = CheckVariables(validated.model.graph.variables(), OptimizerSlotNames(job->optimizer));
    }
    if (!sound.ok()) {
      Append(absl::InvalidArgumentError(absl::StrCat(source, ": ", std::string(sound.message()))),
             &errors);
    }
    validated.job = *std::move(job);
  }
  if (!errors.empty()) return absl::InvalidArgumentError(errors);
  return validated;
}

absl::StatusOr<JobNeeds> NeedsOf(const ValidatedJob& validated, std::optional<uint64_t> examples) {
  const Job& job = validated.job;
  const std::vector<Variable>& variables = validated.model.graph.variables();
  const auto slots = static_cast<int64_t>(OptimizerSlotNames(job.optimizer).size());
  JobNeeds needs;
  for (const Variable& variable : variables) {
    (variable.trainable ? needs.trainable_parameters : needs.other_parameters) +=
        ElementCount(variable.shape);
  }
  needs.variable_bytes = (needs.trainable_parameters + needs.other_parameters) * kBytesPerValue;
  needs.slot_bytes = needs.trainable_parameters * slots * kBytesPerValue;
  const ShardingOptions sharding{.min_shard_bytes = job.strategy.min_shard_bytes,
                                 .chunk_bytes = job.strategy.chunk_bytes};
  SHOAL_RETURN_IF_ERROR(CheckChunks(variables, sharding, job.strategy.window_steps));
  std::vector<std::string> addresses;
  if (validated.cluster.has_value()) addresses = validated.cluster->PsAddresses();
  const int ps_count = std::max(1, static_cast<int>(addresses.size()));
  const int workers =
      validated.cluster.has_value() ? static_cast<int>(validated.cluster->workers.size()) : 1;
  const ShardMap shard_map(variables, ps_count, sharding);
  for (size_t i = 0; i < addresses.size(); ++i) {
    needs.ps.push_back(NeedsOfPs(shard_map.ps(static_cast<int>(i)), variables, slots));
    needs.ps.back().address = addresses[i];
  }
  needs.memory.push_back(CoordinatorMemory());
  for (int i = 0; i < ps_count; ++i) {
    needs.memory.push_back(
        PsMemory(i, shard_map.ps(i), static_cast<int>(slots), job.strategy.window_steps, workers));
  }
  SHOAL_ASSIGN_OR_RETURN(needs.memory.emplace_back(),
                         WorkerNeeds(validated, examples.value_or(0), ps_count));
  needs.total_steps = job.steps;
  if (examples.has_value()) {
    const StepPlan plan(*examples, static_cast<uint64_t>(job.batch_size), job.epochs, job.steps);
    needs.examples = *examples;
    needs.steps_per_epoch = plan.steps_per_epoch();
    needs.total_steps = plan.total_steps();
  }
  return needs;
}

std::string NeedsText(const ValidatedJob& validated, const JobNeeds& needs,
                      const std::string& why_no_examples) {
  const Job& job = validated.job;
  std::string text;
  for (const std::string& line : validated.overridden) absl::StrAppend(&text, line, "\n");
  if (!validated.cluster.has_value()) {
    text += "cluster: none was given (--cluster_spec, TF_CONFIG)\n";
  } else {
    const size_t workers = validated.cluster->workers.size();
    absl::StrAppend(&text, "cluster: 1 chief, ", needs.ps.size(), " ps, ", workers,
                    workers == 1 ? " worker\n" : " workers\n");
  }
  absl::StrAppend(&text, "job: ", job.name, ", fingerprint ",
                  absl::Hex(job.Fingerprint(), absl::kZeroPad8), "\n");
  absl::StrAppend(&text, "parameters: ", needs.trainable_parameters, " trainable, ",
                  needs.other_parameters, " other (", FormatBytes(needs.variable_bytes),
                  "), optimizer slots ", FormatBytes(needs.slot_bytes), "\n");
  for (size_t i = 0; i < needs.ps.size(); ++i) {
    const JobNeeds::Ps& ps = needs.ps[i];
    absl::StrAppend(&text, "ps ", i, " at ", ps.address, ": variables ",
                    FormatBytes(ps.variable_bytes), ", slots ", FormatBytes(ps.slot_bytes), ", ",
                    ps.chunks, ps.chunks == 1 ? " chunk\n" : " chunks\n");
  }
  text += "memory:\n";
  for (const MemoryNeeds& task : needs.memory) {
    absl::StrAppend(&text, "  ", task.task, ": ", task.ToText(), "\n");
  }
  if (needs.examples > 0) {
    absl::StrAppend(&text, "steps: ", needs.total_steps, " of ", job.batch_size, " examples, ",
                    needs.steps_per_epoch, " an epoch of ", needs.examples, " examples\n");
  } else if (job.steps > 0) {
    absl::StrAppend(&text, "steps: ", needs.total_steps, " of ", job.batch_size,
                    " examples; how many epochs these are is not known here: ", why_no_examples,
                    "\n");
  } else {
    absl::StrAppend(&text, "steps: those of ", job.epochs, job.epochs == 1 ? " epoch" : " epochs",
                    "; how many these are is not known here: ", why_no_examples, "\n");
  }
  return text;
}

}  // namespace shoal
