// The part of ComputeThread that prepares a job: data, model, memory.

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/log/logging.h"
#include "common/memory/memory_limit.h"
#include "common/optimizer/optimizer.h"
#include "worker/job/data_error.h"
#include "worker/job/job_data.h"
#include "worker/job/job_model.h"
#include "worker/job/job_names.h"
#include "worker/step/compute_thread.h"
#include "worker/step/worker_memory.h"

namespace shoal {
namespace {

// Error if a loss scale would break promise 9: in synchronous rounds the variables depend on the
// job alone.
absl::Status CheckLossScale(const Job& job, const ModelRunner& runner) {
  if (!job.strategy.in_rounds() || !runner.scales_loss()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "this worker computes the layers under \"mixed_float16\" in float16, with a loss scale that "
      "depends on its own earlier steps. In synchronous rounds the variables would then depend on "
      "which worker computes a step. Give the layers the policy \"mixed_bfloat16\", take the "
      "strategy \"",
      job.strategy.local() ? "local\" without $.strategy.gradients_per_update" : "async\"",
      ", or start the workers with --device=cpu, which computes them in float32"));
}

}  // namespace

absl::StatusOr<StepComputer::Prepared> ComputeThread::PrepareNow(const std::string& job_text,
                                                                 int ps_count) {
  SHOAL_ASSIGN_OR_RETURN(Job job, ParseResolvedJob(job_text, "the coordinator's job"));
  job.training.roots = job.test.roots = options_.data_roots;
  SHOAL_ASSIGN_OR_RETURN(const JobModel computed, JobModel::Of(job));
  const Graph& graph = computed.model.graph;

  std::shared_ptr<const Dataset> training, test;
  if (!options_.only_evaluates) {
    auto opened = OpenTraining(job, computed);
    if (!opened.ok()) return DataError(opened.status());
    training = *std::move(opened);
  }
  if (!job.test.empty()) {
    auto opened = OpenTest(job, computed);
    if (!opened.ok()) return DataError(opened.status());
    test = *std::move(opened);
  }
  DatasetMemory data_memory;
  for (const Dataset* const data : {training.get(), test.get()})
    if (data != nullptr) data_memory = data_memory + data->memory();

  SHOAL_ASSIGN_OR_RETURN(ShardMap shard_map, ShardMapOf(job, graph.variables(), ps_count));
  shard_map_ = std::make_unique<ShardMap>(std::move(shard_map));
  NoteChunks(graph.variables(), ps_count);

  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<const Optimizer> optimizer, MakeOptimizer(job.optimizer));
  clipping_ = optimizer->clipping();
  ModelRunner::Options runner = computed.RunnerOptions();
  runner.backend = options_.backend;
  runner.numerics = options_.numerics;
  // Promise 9: every worker computes the same values for a step. Evaluations are always
  // deterministic.
  if (job.strategy.sync() || options_.only_evaluates) runner.numerics.nondeterministic = false;
  runner.threads = options_.threads;
  runner.seed = job.seed;
  runner.uint8_inputs = Uint8InputsOf({training.get(), test.get()});
  SHOAL_ASSIGN_OR_RETURN(runner_, options_.create_runner(std::move(runner)));
  if (!options_.only_evaluates) SHOAL_RETURN_IF_ERROR(CheckLossScale(job, *runner_));
  ReadAhead(job, std::move(training), std::move(test));
  if (const std::string precision = runner_->DescribePrecision(); !precision.empty())
    LogInfo(precision);
  SHOAL_ASSIGN_OR_RETURN(auto push_codec, MakeCodec(job.compression.push, Direction::kPush));
  SHOAL_ASSIGN_OR_RETURN(auto pull_codec, MakeCodec(job.compression.pull, Direction::kPull));
  SHOAL_RETURN_IF_ERROR(options_.only_evaluates ? TakeMemoryToEvaluate(data_memory)
                                                : TakeMemory(job, training_examples_, data_memory));
  if (job.strategy.worker_momentum > 0 && !options_.only_evaluates) {
    momentum_ =
        std::make_unique<WorkerMomentum>(job.strategy.worker_momentum, runner_->layout().size);
  }
  if (job.strategy.local() && !options_.only_evaluates) {
    SHOAL_ASSIGN_OR_RETURN(const auto outer, MakePsOptimizer(job));
    inner_ = std::make_unique<InnerOptimizer>(
        InnerOptimizer::Options{.optimizer = std::move(optimizer),
                                .difference_clipping = outer->clipping(),
                                .batches_per_step = job.strategy.batches_per_step,
                                .variables = graph.variables(),
                                .by_chunks = job.strategy.fragments > 1});
    Pin(inner_->values());
  }
  if (job.strategy.fragments > 1 && !options_.only_evaluates) {
    fragments_.emplace(*shard_map_, job.strategy.fragments);
    batch_gradients_.resize(runner_->layout().size);
    Pin(batch_gradients_);
  }
  Prepared prepared = {.training_examples = training_examples_,
                       .test_examples = test_ == nullptr ? 0 : test_->examples(),
                       .total_steps = plan_.has_value() ? plan_->steps().total_steps() : 0,
                       .test_batches = test_ == nullptr ? 0 : test_->batches(),
                       .shard_map = shard_map_.get(),
                       .layout = &runner_->layout(),
                       .parameters = parameters_,
                       .cut_parameters = cut_parameters_,
                       .gradients = gradients(),
                       .gradients_owner = gradients_,
                       .gradients_memory = gradients_ == nullptr ? nullptr : gradients_->shared(),
                       .memory_bytes = memory_bytes_,
                       .pulls_below = job.strategy.pulls_below(),
                       .push_codec = std::move(push_codec),
                       .pull_codec = std::move(pull_codec)};
  for (const Variable& variable : graph.variables())
    prepared.variable_names.push_back(variable.name);
  return prepared;
}

absl::StatusOr<std::shared_ptr<const Dataset>> ComputeThread::OpenTraining(
    const Job& job, const JobModel& computed) {
  SHOAL_RETURN_IF_ERROR(CheckClassesOfTraining(job));
  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> training,
                         OpenJobData(job.training, *computed.loss, computed.model.graph));
  training_labels_ = training->LabelSource();
  training_examples_ = training->size();
  plan_ = BatchPlanOf(job, training_examples_);
  return training;
}

absl::StatusOr<std::shared_ptr<const Dataset>> ComputeThread::OpenTest(const Job& job,
                                                                       const JobModel& computed) {
  SHOAL_ASSIGN_OR_RETURN(const DataSource source, WithNamesOfJob(job, job.test));
  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> test,
                         OpenJobData(source, *computed.loss, computed.model.graph));
  return test;
}

void ComputeThread::ReadAhead(const Job& job, std::shared_ptr<const Dataset> training,
                              std::shared_ptr<const Dataset> test) {
  if (training != nullptr) {
    training_ = std::make_unique<BatchSource>(
        BatchSource::Options{.dataset = std::move(training),
                             .plan = plan_->batches(),
                             .seed = job.seed,
                             .shuffle = true,
                             .uint8_inputs = runner_->uint8_inputs()});
  }
  if (test != nullptr) {
    test_ = std::make_unique<DatasetPass>(std::move(test), job.batch_size, runner_->uint8_inputs());
  }
}

void ComputeThread::NoteChunks(const std::vector<Variable>& variables, int ps_count) {
  chunks_of_variable_.resize(variables.size());
  for (int ps = 0; ps < ps_count; ++ps) {
    for (int i = 0; i < static_cast<int>(shard_map_->ps(ps).chunks.size()); ++i) {
      const Chunk& chunk = shard_map_->ps(ps).chunks[i];
      if (!chunk.pushed()) continue;
      const int id = static_cast<int>(chunk_ids_.size());
      chunk_ids_.push_back({ps, i});
      variables_of_chunk_.push_back(static_cast<int>(chunk.pieces.size()));
      for (const ChunkPiece& piece : chunk.pieces)
        chunks_of_variable_[piece.variable].push_back(id);
    }
  }
  for (const Variable& variable : variables)
    optimized_.push_back(variable.rule == UpdateRule::kOptimizer);
}

// Does not count activations, because they are small compared with those of training. If they do
// not fit, the error comes when the memory runs out.
absl::Status ComputeThread::TakeMemoryToEvaluate(const DatasetMemory& data) {
  const size_t size = runner_->layout().size;
  MemoryNeeds needs = WorkerMemory({.data_bytes = data.held, .reading_bytes = data.temporary});
  needs.task = "evaluator";
  needs.held.push_back({"parameters to evaluate", size * sizeof(float)});
  SHOAL_RETURN_IF_ERROR(CheckMemory(needs, options_.memory,
                                    "The evaluator holds the whole model: take a machine with more "
                                    "memory."));
  cut_parameters_.resize(size);
  Pin(cut_parameters_);
  return absl::OkStatus();
}

absl::Status ComputeThread::TakeMemory(const Job& job, uint64_t training_examples,
                                       const DatasetMemory& data) {
  SHOAL_ASSIGN_OR_RETURN(const MemoryNeeds needs,
                         WorkerMemoryOf(job, training_examples, data, *shard_map_, runner_.get()));
  SHOAL_RETURN_IF_ERROR(CheckMemory(
      needs, options_.memory,
      "Every worker holds the whole model: take a machine with more memory, or fewer workers on "
      "this one."));
  if (const std::string warning = MayRunShort(needs, options_.memory); !warning.empty())
    LogWarning(warning);
  memory_bytes_ = needs.max_bytes() - needs.shared_bytes();
  const size_t size = runner_->layout().size;
  parameters_.resize(size);
  cut_parameters_.resize(job.test.empty() ? 0 : size);
  gradients_ = std::make_shared<const GradientMemory>(size);
  if (gradients_->shared() == nullptr) {
    LogWarning(
        "the worker copies gradients for the ps of this machine, which takes longer: the system "
        "gives no memory that processes can share (look at `ulimit -f`)");
  }
  for (const std::span<float> buffer :
       {std::span(parameters_), std::span(cut_parameters_), gradients()})
    Pin(buffer);
  return absl::OkStatus();
}

// Pins the buffer for faster copies from and to a device. Logs a warning if this fails; the results
// are then the same, but slower.
void ComputeThread::Pin(std::span<float> buffer) {
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> pinned = runner_->Pin(buffer);
  if (pinned.ok()) {
    pinned_.push_back(*std::move(pinned));
  } else {
    LogWarning("cannot pin the model's memory, so copies from and to the device are slower: " +
               std::string(pinned.status().message()));
  }
}

}  // namespace shoal
