#include "worker/compute/runner/graph_runner.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"
#include "worker/compute/plan/passes/passes.h"
#include "worker/compute/runner/fitting_batch.h"
#include "worker/compute/runner/labels.h"
#include "worker/compute/runner/micro_batches.h"

namespace shoal {
namespace {

// Training and evaluation need four each: a full batch and a smaller last batch.
constexpr size_t kMaxCompiled = 8;

// The fraction of a device's memory reserved for its programs is 1 / this.
constexpr int64_t kShareOfPrograms = 64;

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

std::string VerbOf(PlanMode mode) {
  switch (mode) {
    case PlanMode::kTrain:
      return "train with";
    case PlanMode::kEvaluate:
      return "evaluate";
    case PlanMode::kPredict:
    case PlanMode::kPredictTraining:
      break;
  }
  return "predict for";
}

absl::Status CheckSize(const std::string& what, size_t actual, int64_t expected) {
  if (static_cast<int64_t>(actual) == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " has ", actual, " values; ", expected, " are needed"));
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
  const int64_t at_once = MicroBatchSize(examples);
  // Compile the larger part last: its memory is the result.
  SHOAL_RETURN_IF_ERROR(Find(PlanMode::kTrain, LastMicroBatchSize(examples)).status());
  SHOAL_ASSIGN_OR_RETURN(const Executable* executable, Find(PlanMode::kTrain, at_once));
  constexpr int64_t kBytes = sizeof(float);
  int64_t data = ElementCount(BatchShape(training_.target, examples)) * kBytes;
  if (training_.weights != kNoValue) data += examples * kBytes;
  const std::vector<ValueId>& inputs = options_.model.inputs();
  for (size_t i = 0; i < inputs.size(); ++i) {
    data +=
        ElementCount(BatchShape(inputs[i], examples)) * (uint8_inputs().contains(i) ? 1 : kBytes);
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
    SHOAL_RETURN_IF_ERROR(CheckSize("the buffer of gradients", gradients.size(), layout_.size));
  SHOAL_ASSIGN_OR_RETURN(
      BatchResult result,
      Run(PlanMode::kTrain, part, step,
          {.parameters = parameters, .arriving = arriving, .gradients = gradients, .sum = sum},
          on_variable_done));
  if (scales_loss()) result.loss_scale = loss_scale_.value();
  return result;
}

absl::StatusOr<std::vector<Transfer::Range>> GraphRunner::SummedRanges(int64_t examples) {
  const int64_t at_once = MicroBatchSize(examples);
  if (at_once < examples && !backend_->sums_parts()) return std::vector<Transfer::Range>();
  backend_->UseThreads(options_.threads);
  SHOAL_ASSIGN_OR_RETURN(const Executable* executable,
                         Find(PlanMode::kTrain, LastMicroBatchSize(examples)));
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
  std::vector<float> prediction(ElementCount(BatchShape(training_.prediction, batch.examples)));
  SHOAL_RETURN_IF_ERROR(
      Run(mode, batch, 0, {.parameters = parameters, .prediction = prediction}, nullptr).status());
  return prediction;
}

absl::Status GraphRunner::CheckBatch(const Batch& batch, std::span<const float> parameters,
                                     bool needs_target) const {
  SHOAL_RETURN_IF_ERROR(CheckSize("the buffer of parameters", parameters.size(), layout_.size));
  SHOAL_RETURN_IF_ERROR(CheckSizes(batch, needs_target));
  if (!needs_target) return absl::OkStatus();
  return CheckLabels(batch, *options_.loss,
                     training_.graph.value(training_.prediction).shape.back());
}

absl::Status GraphRunner::CheckSizes(const Batch& batch, bool needs_target) const {
  if (batch.examples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.examples, " examples; at least 1 is needed"));
  }
  const std::vector<ValueId>& inputs = options_.model.inputs();
  if (batch.inputs.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the batch has ", batch.inputs.size(),
                                                   " inputs; the model has ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = absl::StrCat("input \"", training_.graph.value(inputs[i]).name, "\"");
    const InputValues& values = batch.inputs[i];
    SHOAL_RETURN_IF_ERROR(CheckSize(absl::StrCat(name, " of ", batch.examples, " examples"),
                                    values.size(),
                                    ElementCount(BatchShape(inputs[i], batch.examples))));
    const bool bytes = uint8_inputs().contains(i);
    if (bytes ? values.bytes().empty() : values.floats().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " has ", bytes ? "floats" : "bytes",
                                                     "; this backend takes ",
                                                     bytes ? "bytes of it" : "floats"));
    }
  }
  if (!needs_target) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(CheckSize(absl::StrCat("the target of ", batch.examples, " examples"),
                                  batch.target.size(),
                                  ElementCount(BatchShape(training_.target, batch.examples))));
  if (!batch.weights.empty()) {
    SHOAL_RETURN_IF_ERROR(CheckSize(absl::StrCat("the weights of ", batch.examples, " examples"),
                                    batch.weights.size(), batch.examples));
  }
  return absl::OkStatus();
}

absl::StatusOr<Executable*> GraphRunner::Find(PlanMode mode, int64_t examples) {
  const auto found =
      std::find_if(compiled_.begin(), compiled_.end(), [&](const Compiled& compiled) {
        return compiled.mode == mode && compiled.examples == examples;
      });
  if (found != compiled_.end()) {
    compiled_.splice(compiled_.begin(), compiled_, found);
    return compiled_.front().executable.get();
  }
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Executable> executable,
                         backend_->Compile(Plan(training_, mode, examples, options_.metrics,
                                                {.in_parts = options_.micro_batch_size > 0})));
  announced_ = {};  // compiling may discard the device's copy
  SHOAL_RETURN_IF_ERROR(TakeMemory(*executable, mode, examples));
  compiled_.push_front({mode, examples, std::move(executable)});
  if (compiled_.size() > kMaxCompiled) compiled_.pop_back();
  return compiled_.front().executable.get();
}

absl::Status GraphRunner::TakeMemory(Executable& executable, PlanMode mode, int64_t examples) {
  const absl::Status taken = executable.TakeMemory();
  if (!absl::IsResourceExhausted(taken)) return taken;
  SHOAL_ASSIGN_OR_RETURN(const int64_t available, backend_->DeviceBytes(mode == PlanMode::kTrain));
  const int64_t needed = executable.device_bytes();
  SHOAL_ASSIGN_OR_RETURN(
      const int64_t fits,
      LargestFittingBatch({.examples = examples,
                           .needed_bytes = needed,
                           // The device needs some memory for its programs, too.
                           .available_bytes = available - available / kShareOfPrograms},
                          [&](int64_t fewer) -> absl::StatusOr<int64_t> {
                            SHOAL_ASSIGN_OR_RETURN(
                                const std::unique_ptr<Executable> smaller,
                                backend_->Compile(Plan(training_, mode, fewer, options_.metrics,
                                                       {.in_parts = true, .size_only = true})));
                            return smaller->device_bytes();
                          }));
  const std::string advice =
      fits == 0 ? "not even one example would fit: take a device with more memory, or --device=cpu"
                : absl::StrCat(fits, " would fit: set \"micro_batch_size\" to ", fits,
                               ", which computes a batch in parts, or reduce \"batch_size\" to it");
  return absl::FailedPreconditionError(absl::StrCat(
      "the device has too little memory to ", VerbOf(mode), " ", examples,
      " examples at once: they need ", FormatBytes(needed), ", and ", FormatBytes(available),
      " are free (", std::string(taken.message()), "); ", advice));
}

int64_t GraphRunner::MicroBatchSize(int64_t examples) const {
  return options_.micro_batch_size == 0 ? examples : std::min(options_.micro_batch_size, examples);
}

int64_t GraphRunner::LastMicroBatchSize(int64_t examples) const {
  return (examples - 1) % MicroBatchSize(examples) + 1;
}

absl::StatusOr<BatchResult> GraphRunner::Run(
    PlanMode mode, const Batch& batch, uint64_t step, const RunBuffers& buffers,
    const std::function<void(int variable)>& on_variable_done) {
  backend_->UseThreads(options_.threads);
  const int64_t at_once = MicroBatchSize(batch.examples);
  RunBuffers given = buffers;
  given.same_inputs = mode == PlanMode::kTrain && batch.id != 0 &&
                      announced_ == Announced{.id = batch.id, .examples = at_once};
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
  if (of_next && (source->id == 0 || !CheckSizes(*source, /*needs_target=*/true).ok())) return {};
  const int64_t first = of_next ? 0 : end;
  if (std::min(MicroBatchSize(source->examples), source->examples - first) != examples) return {};
  Batch part = PartOf(*source, first, examples);
  if (of_next) part.id = source->id;
  return part;
}

absl::StatusOr<BatchResult> GraphRunner::RunParts(
    PlanMode mode, const Batch& batch, uint64_t step, const RunBuffers& buffers,
    const std::function<void(int variable)>& on_variable_done) {
  const int64_t at_once = MicroBatchSize(batch.examples);
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
  SHOAL_ASSIGN_OR_RETURN(Executable * executable, Find(mode, batch.examples));
  buffers.inputs = InputsOf(batch);
  if (next.examples > 0) buffers.next_inputs = InputsOf(next);
  if (training_.weights != kNoValue) {
    FindWeights(batch, mode);
    buffers.inputs.push_back(weights_);
  }
  const float loss_scale = loss_scale_.value();
  if (scales_loss()) buffers.inputs.emplace_back(std::span(&loss_scale, 1));
  SHOAL_ASSIGN_OR_RETURN(BatchResult result, executable->Run(context, buffers, on_variable_done,
                                                             options_.on_work_timed));
  announced_ = {.id = next.id, .examples = next.examples};
  return result;
}

// keras.src.trainers.data_adapters.data_adapter_utils.class_weight_to_sample_weights
void GraphRunner::FindWeights(const Batch& batch, PlanMode mode) {
  if (batch.weights.empty()) {
    weights_.assign(batch.examples, 1);
  } else {
    weights_.assign(batch.weights.begin(), batch.weights.end());
  }
  if (options_.class_weights.empty() || mode != PlanMode::kTrain) return;
  const size_t size = batch.target.size() / batch.examples;
  for (int64_t i = 0; i < batch.examples; ++i) {
    const std::span<const float> label = batch.target.subspan(i * size, size);
    const int64_t of_class = size > 1 ? std::max_element(label.begin(), label.end()) - label.begin()
                                      : std::llrint(label[0]);
    const auto weight = options_.class_weights.find(of_class);
    if (weight != options_.class_weights.end()) weights_[i] *= static_cast<float>(weight->second);
  }
}

Shape GraphRunner::BatchShape(ValueId value, int64_t examples) const {
  Shape shape = training_.graph.value(value).shape;
  std::replace(shape.begin(), shape.end(), kBatch, examples);
  return shape;
}

}  // namespace shoal
