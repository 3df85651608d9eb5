#include "worker/compute/runner/graph_runner.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/plan/passes/passes.h"
#include "worker/compute/runner/micro_batches.h"

namespace shoal {
namespace {

bool ComputesInFloat16(const Backend& backend, const Graph& model) {
  const std::vector<Node>& nodes = model.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) {
    return node.compute_dtype == ComputeDtype::kFloat16 && backend.Supports(node);
  });
}

// The inputs of a training graph begin with these, in this order.
std::vector<InputValues> InputsOf(const Batch& batch) {
  std::vector<InputValues> inputs = batch.inputs;
  inputs.push_back(batch.target);
  return inputs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GraphRunner>> GraphRunner::Create(Options options,
                                                                 std::unique_ptr<Backend> backend) {
  if (options.threads < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a model runs on at least one thread, not on ", options.threads));
  }
  if (backend->rewrites_models()) {
    SHOAL_ASSIGN_OR_RETURN(options.model, RewriteModel(options.model));
  }
  SHOAL_ASSIGN_OR_RETURN(
      TrainingGraph training,
      BuildTrainingGraph(options.model, *options.loss,
                         {.weighted = options.weighted || !options.class_weights.empty(),
                          .scales_loss = ComputesInFloat16(*backend, options.model)}));
  if (backend->runs_in_machine_memory()) options.uint8_inputs.clear();
  for (const size_t input : options.uint8_inputs)
    training.uint8_inputs.insert(training.graph.inputs()[input]);
  SHOAL_RETURN_IF_ERROR(CheckKernels(*backend, training.graph));
  return std::unique_ptr<GraphRunner>(
      new GraphRunner(std::move(options), std::move(backend), std::move(training)));
}

absl::StatusOr<ModelRunner::BatchMemory> GraphRunner::MemoryOfBatch(int64_t examples) {
  backend_->UseThreads(options_.threads);
  const int64_t at_once = micro_batches_.size(examples);
  // Compile the larger part last: its memory is the result.
  SHOAL_RETURN_IF_ERROR(
      executables_.Find(PlanMode::kTrain, micro_batches_.last(examples)).status());
  SHOAL_ASSIGN_OR_RETURN(const Executable* executable,
                         executables_.Find(PlanMode::kTrain, at_once));
  constexpr int64_t kBytes = sizeof(float);
  int64_t data = ElementCount(checks_.BatchShape(training_.target, examples)) * kBytes;
  if (training_.weights != kNoValue) data += examples * kBytes;
  const std::vector<ValueId>& inputs = options_.model.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    data += ElementCount(checks_.BatchShape(inputs[i], examples)) *
            (uint8_inputs().contains(i) ? 1 : kBytes);
  }
  const int64_t part_gradients = at_once < examples && !backend_->sums_parts() ? layout_.size : 0;
  const int64_t arena = backend_->runs_in_machine_memory() ? executable->memory_bytes() : 0;
  return BatchMemory{.data = data, .activations = arena + part_gradients * kBytes};
}

absl::StatusOr<std::unique_ptr<PinnedBuffer>> GraphRunner::Pin(std::span<float> buffer) {
  backend_->UseThreads(options_.threads);
  return backend_->Pin(buffer);
}

absl::StatusOr<BatchResult> GraphRunner::Train(
    const Batch& batch, uint64_t step, std::span<const float> parameters,
    std::span<float> gradients, const std::function<void(int variable)>& on_variable_done,
    ArrivingParameters* arriving) {
  SHOAL_ASSIGN_OR_RETURN(const BatchResult result,
                         TrainPart(batch, step, parameters, gradients, on_variable_done, arriving));
  NoteGradient(result.overflowed);
  return result;
}

absl::StatusOr<BatchResult> GraphRunner::TrainPart(
    const Batch& part, uint64_t step, std::span<const float> parameters, std::span<float> gradients,
    const std::function<void(int variable)>& on_variable_done, ArrivingParameters* arriving,
    const SumRank& sum) {
  SHOAL_RETURN_IF_ERROR(CheckBatch(part, parameters, /*needs_target=*/true));
  if (sum.rank == 0)
    SHOAL_RETURN_IF_ERROR(
        CheckValueCount("the buffer of gradients", gradients.size(), layout_.size));
  SHOAL_ASSIGN_OR_RETURN(
      BatchResult result,
      Run(PlanMode::kTrain, part, step,
          {.parameters = parameters, .arriving = arriving, .gradients = gradients, .sum = sum},
          on_variable_done));
  if (scales_loss()) result.loss_scale = loss_scale_.value();
  return result;
}

absl::StatusOr<std::vector<Transfer::Range>> GraphRunner::SummedRanges(int64_t examples) {
  const int64_t at_once = micro_batches_.size(examples);
  if (at_once < examples && !backend_->sums_parts()) return std::vector<Transfer::Range>();
  backend_->UseThreads(options_.threads);
  SHOAL_ASSIGN_OR_RETURN(const Executable* executable,
                         executables_.Find(PlanMode::kTrain, micro_batches_.last(examples)));
  return executable->SummedRanges();
}

void GraphRunner::NoteGradient(bool overflowed) {
  if (!scales_loss()) return;
  if (overflowed) {
    loss_scale_.NoteOverflow();
  } else {
    loss_scale_.NoteFinite();
  }
}

absl::Status GraphRunner::CheckBatch(const Batch& batch, std::span<const float> parameters,
                                     bool needs_target) const {
  SHOAL_RETURN_IF_ERROR(
      CheckValueCount("the buffer of parameters", parameters.size(), layout_.size));
  return checks_.Check(batch, needs_target);
}

absl::StatusOr<BatchResult> GraphRunner::Evaluate(const Batch& batch,
                                                  std::span<const float> parameters) {
  SHOAL_RETURN_IF_ERROR(CheckBatch(batch, parameters, /*needs_target=*/true));
  return Run(PlanMode::kEvaluate, batch, 0, {.parameters = parameters}, nullptr);
}

absl::StatusOr<std::vector<float>> GraphRunner::Predict(const Batch& batch,
                                                        std::span<const float> parameters,
                                                        bool training) {
  SHOAL_RETURN_IF_ERROR(CheckBatch(batch, parameters, /*needs_target=*/false));
  const PlanMode mode = training ? PlanMode::kPredictTraining : PlanMode::kPredict;
  std::vector<float> prediction(
      ElementCount(checks_.BatchShape(training_.prediction, batch.examples)));
  SHOAL_RETURN_IF_ERROR(
      Run(mode, batch, 0, {.parameters = parameters, .prediction = prediction}, nullptr).status());
  return prediction;
}

absl::StatusOr<BatchResult> GraphRunner::Run(
    PlanMode mode, const Batch& batch, uint64_t step, const RunBuffers& buffers,
    const std::function<void(int variable)>& on_variable_done) {
  backend_->UseThreads(options_.threads);
  const int64_t at_once = micro_batches_.size(batch.examples);
  RunBuffers given = buffers;
  given.same_inputs = mode == PlanMode::kTrain && batch.id != 0 &&
                      announced_ == Announced{.id = batch.id,
                                              .examples = at_once,
                                              .compilations = executables_.compilations()};
  if (at_once < batch.examples) return RunParts(mode, batch, step, given, on_variable_done);
  const RunContext context = {
      .job_seed = options_.seed, .step = step, .first_example = batch.first_example};
  return RunWhole(mode, batch, RunAfter(mode, batch, batch.examples, batch.examples), context,
                  std::move(given), on_variable_done);
}

Batch GraphRunner::RunAfter(PlanMode mode, const Batch& batch, int64_t end,
                            int64_t examples) const {
  const bool of_next = end == batch.examples;
  const Batch* const source = of_next ? batch.next : &batch;
  if (mode != PlanMode::kTrain || source == nullptr) return {};
  // An invalid next batch is reported when the runner trains on it.
  if (of_next && (source->id == 0 || !checks_.CheckSizes(*source, /*needs_target=*/true).ok()))
    return {};
  const int64_t first = of_next ? 0 : end;
  if (std::min(micro_batches_.size(source->examples), source->examples - first) != examples)
    return {};
  Batch part = PartOf(*source, first, examples);
  if (of_next) part.id = source->id;
  return part;
}

absl::StatusOr<BatchResult> GraphRunner::RunParts(
    PlanMode mode, const Batch& batch, uint64_t step, const RunBuffers& buffers,
    const std::function<void(int variable)>& on_variable_done) {
  const int64_t at_once = micro_batches_.size(batch.examples);
  const bool sums_here = mode == PlanMode::kTrain && !backend_->sums_parts();
  if (sums_here) part_gradients_.resize(layout_.size);
  BatchResult sums;
  bool same_inputs = buffers.same_inputs;
  for (int64_t first = 0; first < batch.examples; first += at_once) {
    const Batch part = PartOf(batch, first, std::min(at_once, batch.examples - first));
    const bool last = first + part.examples == batch.examples;
    RunBuffers of_part = buffers;
    of_part.same_parameters = first > 0;
    of_part.same_inputs = same_inputs;
    const Batch next = RunAfter(mode, batch, first + part.examples, part.examples);
    if (first > 0) of_part.arriving = nullptr;  // the first part has awaited them
    if (!buffers.prediction.empty()) {
      const size_t size = buffers.prediction.size() / batch.examples;
      of_part.prediction = buffers.prediction.subspan(first * size, part.examples * size);
    }
    if (first > 0 && sums_here) of_part.gradients = part_gradients_;
    if (mode == PlanMode::kTrain && !sums_here)
      of_part.part = last ? RunBuffers::Part::kLast : RunBuffers::Part::kNotLast;
    const double share = ShareOf(part, batch);
    const RunContext context = {.job_seed = options_.seed,
                                .step = step,
                                .first_example = part.first_example,
                                .share = static_cast<float>(share),
                                .begins_sums = first == 0};
    const auto add = [&](int variable) {
      if (sums.overflowed) return;
      const ModelLayout::Extent& extent = layout_.variables[variable];
      if (sums_here) {
        AddPart(of_part.gradients.subspan(extent.offset, extent.size), share,
                /*begins=*/first == 0, buffers.gradients.subspan(extent.offset, extent.size));
      }
      if (last && on_variable_done) on_variable_done(variable);
    };
    SHOAL_ASSIGN_OR_RETURN(const BatchResult result,
                           RunWhole(mode, part, next, context, of_part, add));
    same_inputs = next.examples > 0;
    AddTo(result, &sums);
  }
  return sums;
}

absl::StatusOr<BatchResult> GraphRunner::RunWhole(
    PlanMode mode, const Batch& batch, const Batch& next, const RunContext& context,
    RunBuffers buffers, const std::function<void(int variable)>& on_variable_done) {
  announced_ = {};
  SHOAL_ASSIGN_OR_RETURN(Executable * executable, executables_.Find(mode, batch.examples));
  buffers.inputs = InputsOf(batch);
  if (next.examples > 0) buffers.next_inputs = InputsOf(next);
  if (training_.weights != kNoValue) {
    buffers.inputs.push_back(weights_.Of(batch, /*training=*/mode == PlanMode::kTrain));
  }
  const float loss_scale = loss_scale_.value();
  if (scales_loss()) buffers.inputs.emplace_back(std::span(&loss_scale, 1));
  SHOAL_ASSIGN_OR_RETURN(BatchResult result, executable->Run(context, buffers, on_variable_done,
                                                             options_.on_work_timed));
  announced_ = {
      .id = next.id, .examples = next.examples, .compilations = executables_.compilations()};
  return result;
}

}  // namespace shoal
