#include "cli/validation/job_needs.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/compression/chunk_payload.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/json/json_errors.h"
#include "common/optimizer/optimizer.h"
#include "common/saved_model/initial_weights.h"
#include "worker/compute/backend/backends.h"
#include "worker/compute/runner/model_runner.h"
#include "worker/input/files/joined_errors.h"
#include "worker/job/job_data.h"
#include "worker/job/job_model.h"
#include "worker/job/job_names.h"
#include "worker/step/worker_memory.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr int64_t kBytesPerValue = sizeof(float);

// Bytes of the shards of one ps, without the alignment between them.
JobNeeds::Ps NeedsOfPs(const PsShards& shards, const std::vector<Variable>& variables,
                       int64_t slots) {
  JobNeeds::Ps needs;
  needs.chunks = static_cast<int64_t>(shards.chunks.size());
  for (const Chunk& chunk : shards.chunks) {
    for (const ChunkPiece& piece : chunk.pieces) {
      needs.variable_bytes += piece.size * kBytesPerValue;
      if (variables[piece.variable].has_slots())
        needs.slot_bytes += piece.size * kBytesPerValue * slots;
    }
  }
  return needs;
}

// Asks a runner for the memory of a batch, always one of the cpu backend.
absl::StatusOr<MemoryNeeds> WorkerNeeds(const Job& job, uint64_t examples,
                                        const DatasetMemory& data, const ShardMap& shard_map) {
  SHOAL_ASSIGN_OR_RETURN(const JobModel computed, JobModel::Of(job));
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> runner,
                         ModelRunner::Create(computed.RunnerOptions()));
  return WorkerMemoryOf(job, examples, data, shard_map, runner.get());
}

// A ps answers every pushed chunk with its values: both directions have the same chunks.
JobNeeds::Traffic TrafficOf(const Codec* codec, const ShardMap& shard_map) {
  JobNeeds::Traffic traffic;
  if (codec != nullptr) traffic.codec = codec->config();
  for (int ps = 0; ps < shard_map.ps_count(); ++ps) {
    for (const Chunk& chunk : shard_map.ps(ps).chunks) {
      if (!chunk.pushed()) continue;
      traffic.bytes += PayloadBytes(CodecOf(codec, chunk), chunk);
      traffic.float32_bytes += PayloadBytes(nullptr, chunk);
    }
  }
  return traffic;
}

// "pushes int8, 1.0 MiB instead of 4.1 MiB"
std::string TrafficText(const char* verb, const JobNeeds::Traffic& traffic) {
  if (traffic.codec.empty())
    return absl::StrCat(verb, " float32, ", FormatBytes(traffic.float32_bytes));
  return absl::StrCat(verb, " ", traffic.codec, ", ", FormatBytes(traffic.bytes), " instead of ",
                      FormatBytes(traffic.float32_bytes));
}

// Describes the strategy's changes to the optimizer, as numbers that no file contains.
std::string OptimizerText(const Job& job) {
  std::string text;
  const RateScale scale = RateScaleOf(job);
  if (scale.factor != 1) {
    absl::StrAppend(&text, "learning rate: the optimizer's, times ", scale.factor);
    if (scale.warmup_updates > 0)
      absl::StrAppend(&text, ", reached after ", scale.warmup_updates, " updates");
    text += "\n";
  }
  const auto ps_optimizer = MakePsOptimizer(job);
  if (job.strategy.momentum_by_workers && ps_optimizer.ok()) {
    const json asked = json::parse(job.optimizer), made = json::parse((*ps_optimizer)->config());
    if (const std::string option = MomentumOption(asked); !option.empty()) {
      absl::StrAppend(&text, "momentum: ", option, " is ", made["config"][option].get<double>(),
                      " with ", job.strategy.workers, " workers, instead of ",
                      asked["config"][option].get<double>(), "\n");
    }
  }
  return text;
}

// Warns of fields that depend on the number of workers and are far from the listed number.
std::string WorkersText(const Job::Strategy& strategy, size_t listed) {
  std::string text;
  const auto add = [&](const char* field, uint64_t given, uint64_t meant) {
    if (given <= 2 * meant + 1) return;
    absl::StrAppend(&text, "$.strategy.", field, ": ", given, "; for the ", listed, " listed ",
                    listed == 1 ? "worker" : "workers", " it would be ", meant,
                    "; training may diverge\n");
  };
  if (listed == 0) return text;
  add("look_ahead", strategy.look_ahead, listed - 1);
  if (strategy.scales_by_workers()) add("workers", strategy.workers, listed);
  return text;
}

// Advises compression for a job that is made for slow links and sends uncompressed values.
std::string CompressionAdvice(const Job& job, const JobNeeds& needs) {
  if (!job.strategy.local() || !needs.push.codec.empty() || !needs.pull.codec.empty()) return "";
  return absl::StrCat("compression: none, a step pushes and pulls ",
                      FormatBytes(needs.push.float32_bytes),
                      " each; $.compression {\"push\": \"int8\", \"pull\": \"bf16\"} makes this a "
                      "quarter and a half, and \"local\" loses almost nothing by it\n");
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
    if (validated.cluster.has_value())
      Append(ResolveStrategy(validated.cluster->workers.size(), &*job), &errors);
    absl::StatusOr<KerasModel> model = ModelOfJob(*job, job_file);
    Append(model.status(), &errors);
    if (model.ok()) {
      validated.model = *std::move(model);
      absl::StatusOr<std::string> weights = DescribeInitialWeights(*job, validated.model);
      Append(weights.status(), &errors);
      if (weights.ok()) validated.initial_weights = *std::move(weights);
    }
    validated.job = *std::move(job);
  }
  if (!errors.empty()) return absl::InvalidArgumentError(errors);
  return validated;
}

absl::StatusOr<KerasModel> ModelOfJob(const Job& job, const std::string& job_file) {
  absl::StatusOr<KerasModel> model = ParseKerasModel(job.model_json);
  absl::Status sound = model.status();
  if (sound.ok()) {
    const std::vector<Variable>& variables = model->graph.variables();
    SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakePsOptimizer(job));
    if (const absl::Status found = CheckDecayExclusions(job, variables); !found.ok())
      return absl::InvalidArgumentError(WithSource(job_file, found).message());
    sound = CheckVariables(variables, optimizer->slot_names());
  }
  if (sound.ok()) return model;
  // A model inside the job file has no path.
  const std::string source = job.model_path.empty() ? job_file + ": $.model" : job.model_path;
  return absl::InvalidArgumentError(WithSource(source, sound).message());
}

absl::StatusOr<std::string> DescribeInitialWeights(const Job& job, const KerasModel& model) {
  if (job.initial_weights.path.empty()) return "";
  const absl::StatusOr<InitialWeights> weights =
      FindInitialWeights(job.initial_weights.path, job.model_json, model.graph.variables());
  if (weights.ok()) return weights->ToText();
  const bool of_model = job.initial_weights.path == job.model_path;
  return absl::Status(weights.status().code(),
                      absl::StrCat(of_model ? "$.model: " : "$.initial_weights: ",
                                   std::string(weights.status().message())));
}

std::string DescribeClasses(const std::vector<std::string>& names, const Loss& loss,
                            const Shape& output) {
  constexpr size_t kMaxNames = 10;
  if (names.empty()) return "";
  const size_t shown = std::min(names.size(), kMaxNames);
  std::string text = absl::StrCat(names.size(), names.size() == 1 ? " class: " : " classes: ",
                                  absl::StrJoin(names.begin(), names.begin() + shown, ", "));
  if (names.size() > shown) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  const auto outputs = static_cast<size_t>(output.back());
  if (loss.target() == Loss::Target::kClassNumber && outputs > names.size()) {
    absl::StrAppend(&text, "; the model has ", outputs, " outputs, one for each class: the last ",
                    outputs - names.size(),
                    outputs - names.size() == 1 ? " has no class" : " have no class");
  }
  return text;
}

absl::StatusOr<FoundData> CheckData(const Job& job, const KerasModel& model) {
  SHOAL_RETURN_IF_ERROR(CheckModelOfJob(model));
  SHOAL_ASSIGN_OR_RETURN(const JobModel computed, JobModel::Of(job));
  const std::shared_ptr<const KerasLoss>& loss = computed.loss;
  FoundData found;
  const auto check = [&](const DataSource& source, std::optional<uint64_t>* examples) {
    const auto dataset = OpenJobData(source, *loss, model.graph);
    if (!dataset.ok()) return dataset.status();
    *examples = (*dataset)->size();
    found.memory = found.memory + (*dataset)->memory();
    if (const uint64_t seen = CheckedLabelCount(**dataset); seen < (*dataset)->size()) {
      absl::StrAppend(&found.not_read_all, (*dataset)->LabelSource(), ": checked the first ", seen,
                      " of ", (*dataset)->size(), " labels; training checks the others\n");
    }
    return absl::OkStatus();
  };
  SHOAL_RETURN_IF_ERROR(CheckClassesOfTraining(job));
  absl::Status status = check(job.training, &found.training_examples);
  if (!job.test.empty()) {
    const absl::StatusOr<DataSource> test = WithNamesOfJob(job, job.test);
    status = JoinErrors(status, test.ok() ? check(*test, &found.test_examples) : test.status());
  }
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  if (found.training_examples.has_value()) {
    const BatchPlan plan = BatchPlanOf(job, *found.training_examples);
    SHOAL_RETURN_IF_ERROR(CheckRounds(job, plan.steps().steps_per_epoch()));
  }
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> classes, ClassNamesOfJob(job));
  const Graph& graph = model.graph;
  found.classes = DescribeClasses(classes, *loss, graph.value(graph.outputs().front()).shape);
  found.missing = std::string(status.message());
  return found;
}

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
                         WorkerNeeds(job, examples.value_or(0), data, shard_map));
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

absl::StatusOr<JobNeeds> NeedsOf(const ValidatedJob& validated, std::optional<uint64_t> examples,
                                 const DatasetMemory& data) {
  const Job& job = validated.job;
  const std::vector<Variable>& variables = validated.model.graph.variables();
  SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakePsOptimizer(job));
  const auto slots = static_cast<int64_t>(optimizer->slot_names().size());
  JobNeeds needs;
  for (const Variable& variable : variables) {
    (variable.rule == UpdateRule::kOptimizer ? needs.trainable_parameters
                                             : needs.other_parameters) +=
        ElementCount(variable.shape);
  }
  needs.variable_bytes = (needs.trainable_parameters + needs.other_parameters) * kBytesPerValue;
  needs.slot_bytes = needs.trainable_parameters * slots * kBytesPerValue;
  std::vector<std::string> addresses;
  TaskCounts counts;
  if (validated.cluster.has_value()) {
    addresses = validated.cluster->PsAddresses();
    counts = {.ps = static_cast<int>(addresses.size()),
              .workers = static_cast<int>(validated.cluster->workers.size())};
  }
  SHOAL_ASSIGN_OR_RETURN(const auto backend, CreateBackend(ModelRunner::Options().backend));
  needs.precision = DescribePrecision(*backend, validated.model.graph);
  SHOAL_ASSIGN_OR_RETURN(needs.memory, MemoryOfTasks(job, validated.model, counts, examples, data));
  SHOAL_ASSIGN_OR_RETURN(const ShardMap shard_map, ShardMapOf(job, variables, counts.ps));
  SHOAL_ASSIGN_OR_RETURN(const auto push, MakeCodec(job.compression.push, Direction::kPush));
  SHOAL_ASSIGN_OR_RETURN(const auto pull, MakeCodec(job.compression.pull, Direction::kPull));
  needs.push = TrafficOf(push.get(), shard_map);
  needs.pull = TrafficOf(pull.get(), shard_map);
  for (size_t i = 0; i < addresses.size(); ++i) {
    needs.ps.push_back(NeedsOfPs(shard_map.ps(static_cast<int>(i)), variables, slots));
    needs.ps.back().address = addresses[i];
  }
  needs.total_steps = job.steps;
  if (examples.has_value()) {
    const StepPlan plan = BatchPlanOf(job, *examples).steps();
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
    absl::StrAppend(&text, "cluster: 1 coordinator, ", needs.ps.size(), " ps, ", workers,
                    workers == 1 ? " worker\n" : " workers\n");
  }
  absl::StrAppend(&text, "job: ", job.name, ", fingerprint ",
                  absl::Hex(job.Fingerprint(), absl::kZeroPad8), "\n");
  absl::StrAppend(&text, "parameters: ", needs.trainable_parameters, " trainable, ",
                  needs.other_parameters, " other (", FormatBytes(needs.variable_bytes),
                  "), optimizer slots ", FormatBytes(needs.slot_bytes), "\n");
  text += validated.initial_weights;
  if (!needs.push.codec.empty() || !needs.pull.codec.empty()) {
    absl::StrAppend(&text, "compression: a step ", TrafficText("pushes", needs.push), ", and ",
                    TrafficText("pulls", needs.pull), "\n");
  }
  absl::StrAppend(&text, CompressionAdvice(job, needs), OptimizerText(job));
  if (validated.cluster.has_value())
    text += WorkersText(job.strategy, validated.cluster->workers.size());
  if (!needs.precision.empty()) absl::StrAppend(&text, "precision: ", needs.precision, "\n");
  for (size_t i = 0; i < needs.ps.size(); ++i) {
    const JobNeeds::Ps& ps = needs.ps[i];
    absl::StrAppend(&text, "ps ", i, " at ", ps.address, ": variables ",
                    FormatBytes(ps.variable_bytes), ", slots ", FormatBytes(ps.slot_bytes), ", ",
                    ps.chunks, ps.chunks == 1 ? " chunk\n" : " chunks\n");
  }
  text +=
      "memory of a process: permanent memory, then the max with temporary memory; "
      "\"the program\" is code, libraries and threads, rounded up:\n";
  for (const MemoryNeeds& task : needs.memory) {
    absl::StrAppend(&text, "  ", task.task, ": ", task.ToText(), "\n");
  }
  const std::string batches =
      job.strategy.local() ? absl::StrCat("up to ", job.strategy.batches_per_step, " batches of ")
                           : "";
  if (needs.examples > 0) {
    const auto batch_size = static_cast<uint64_t>(job.batch_size);
    absl::StrAppend(&text, "steps: ", needs.total_steps, ", each of ", batches,
                    std::min(batch_size, needs.examples), " examples; ", needs.steps_per_epoch,
                    " an epoch of ", needs.examples, " examples",
                    batch_size > needs.examples
                        ? absl::StrCat(", which are fewer than the batch_size of ", batch_size)
                        : "",
                    "\n");
    const uint64_t batches_of_epoch = (needs.examples - 1) / batch_size + 1;
    if (job.strategy.batches_per_step > batches_of_epoch) {
      absl::StrAppend(&text, "$.strategy.batches_per_step: ", job.strategy.batches_per_step,
                      ", but an epoch has only ", batches_of_epoch,
                      " batches: one worker computes a whole epoch as one step\n");
    } else if (const size_t workers =
                   validated.cluster.has_value() ? validated.cluster->workers.size() : 0;
               job.strategy.local() && needs.steps_per_epoch < workers &&
               (job.strategy.in_rounds() || !job.callbacks.empty())) {
      absl::StrAppend(&text, "$.strategy.batches_per_step: ", job.strategy.batches_per_step,
                      " of an epoch of ", batches_of_epoch, " batches: ", needs.steps_per_epoch,
                      needs.steps_per_epoch == 1 ? " step" : " steps", " for ", workers,
                      " workers, and some have nothing to do\n");
    }
  } else if (job.steps > 0) {
    absl::StrAppend(&text, "steps: ", needs.total_steps, ", each of ", batches, job.batch_size,
                    " examples; the number of epochs is unknown here: ", why_no_examples, "\n");
  } else {
    absl::StrAppend(&text, "steps: those of ", job.epochs, job.epochs == 1 ? " epoch" : " epochs",
                    "; their number is unknown here: ", why_no_examples, "\n");
  }
  return text;
}

}  // namespace shoal
