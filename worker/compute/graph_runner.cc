#include "worker/compute/graph_runner.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/labels.h"

namespace shoal {
namespace {

// Training and evaluation with a full and a last, smaller batch each need four.
constexpr size_t kMaxPlans = 8;

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
  SHOAL_ASSIGN_OR_RETURN(options.model, backend->Rewrite(options.model));
  const bool weighted = options.weighted || !options.class_weights.empty();
  SHOAL_ASSIGN_OR_RETURN(TrainingGraph training,
                         BuildTrainingGraph(options.model, *options.loss, weighted));
  SHOAL_RETURN_IF_ERROR(CheckKernels(*backend, training.graph));
  return std::unique_ptr<GraphRunner>(
      new GraphRunner(std::move(options), std::move(backend), std::move(training)));
}

absl::StatusOr<ModelRunner::BatchMemory> GraphRunner::MemoryOfBatch(int64_t examples) {
  backend_->UseThreads(options_.threads);
  SHOAL_ASSIGN_OR_RETURN(const Plan* plan, FindPlan(ProgramMode::kTrain, examples));
  int64_t values = ElementCount(BatchShape(training_.target, examples));
  if (training_.weights != kNoValue) values += examples;
  for (const ValueId input : options_.model.inputs()) {
    values += ElementCount(BatchShape(input, examples));
  }
  return BatchMemory{.data = values * static_cast<int64_t>(sizeof(float)),
                     .activations = plan->program.arena_size_bytes()};
}

absl::StatusOr<BatchResult> GraphRunner::Train(
    const Batch& batch, uint64_t step, std::span<const float> parameters,
    std::span<float> gradients, const std::function<void(int variable)>& on_variable_done) {
  SHOAL_RETURN_IF_ERROR(CheckBatch(batch, parameters, /*needs_target=*/true));
  SHOAL_RETURN_IF_ERROR(CheckSize("the buffer of gradients", gradients.size(), layout_.size));
  SHOAL_ASSIGN_OR_RETURN(const Plan* plan, RunPlan(ProgramMode::kTrain, batch, step, parameters,
                                                   gradients, on_variable_done));
  return Results(*plan, batch);
}

absl::StatusOr<BatchResult> GraphRunner::Evaluate(const Batch& batch,
                                                  std::span<const float> parameters) {
  SHOAL_RETURN_IF_ERROR(CheckBatch(batch, parameters, /*needs_target=*/true));
  SHOAL_ASSIGN_OR_RETURN(const Plan* plan,
                         RunPlan(ProgramMode::kEvaluate, batch, 0, parameters, {}, nullptr));
  return Results(*plan, batch);
}

absl::StatusOr<std::vector<float>> GraphRunner::Predict(const Batch& batch,
                                                        std::span<const float> parameters,
                                                        bool training) {
  SHOAL_RETURN_IF_ERROR(CheckBatch(batch, parameters, /*needs_target=*/false));
  const ProgramMode mode = training ? ProgramMode::kPredictTraining : ProgramMode::kPredict;
  SHOAL_ASSIGN_OR_RETURN(const Plan* plan, RunPlan(mode, batch, 0, parameters, {}, nullptr));
  const std::span<const float> prediction = Prediction(*plan);
  return std::vector<float>(prediction.begin(), prediction.end());
}

absl::Status GraphRunner::CheckBatch(const Batch& batch, std::span<const float> parameters,
                                     bool needs_target) const {
  if (batch.examples < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", batch.examples, " examples; at least 1 is needed"));
  }
  SHOAL_RETURN_IF_ERROR(CheckSize("the buffer of parameters", parameters.size(), layout_.size));
  const std::vector<ValueId>& inputs = options_.model.inputs();
  if (batch.inputs.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat("the batch has ", batch.inputs.size(),
                                                   " inputs; the model has ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    SHOAL_RETURN_IF_ERROR(CheckSize(absl::StrCat("input \"", training_.graph.value(inputs[i]).name,
                                                 "\" of ", batch.examples, " examples"),
                                    batch.inputs[i].size(),
                                    ElementCount(BatchShape(inputs[i], batch.examples))));
  }
  if (!needs_target) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(CheckSize(absl::StrCat("the target of ", batch.examples, " examples"),
                                  batch.target.size(),
                                  ElementCount(BatchShape(training_.target, batch.examples))));
  if (!batch.weights.empty()) {
    SHOAL_RETURN_IF_ERROR(CheckSize(absl::StrCat("the weights of ", batch.examples, " examples"),
                                    batch.weights.size(), batch.examples));
  }
  if (options_.loss->target() != Loss::Target::kClassNumber) {
    return absl::OkStatus();
  }
  return CheckLabels(batch, training_.graph.value(training_.prediction).shape.back());
}

absl::StatusOr<GraphRunner::Plan*> GraphRunner::FindPlan(ProgramMode mode, int64_t examples) {
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& plan) {
    return plan.mode == mode && plan.examples == examples;
  });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
    return &plans_.front();
  }
  ProgramBuilder builder(training_, layout_, mode, examples);
  SHOAL_RETURN_IF_ERROR(backend_->AddSteps(builder));
  const TensorId prediction = builder.tensor(training_.prediction);
  const bool has_loss = mode == ProgramMode::kTrain || mode == ProgramMode::kEvaluate;
  const TensorId loss = has_loss ? builder.tensor(training_.loss_per_example) : -1;
  plans_.push_front({mode, examples, prediction, loss, std::move(builder).Build()});
  if (plans_.size() > kMaxPlans) plans_.pop_back();
  return &plans_.front();
}

absl::StatusOr<GraphRunner::Plan*> GraphRunner::RunPlan(
    ProgramMode mode, const Batch& batch, uint64_t step, std::span<const float> parameters,
    std::span<float> gradients, const std::function<void(int variable)>& on_variable_done) {
  backend_->UseThreads(options_.threads);
  SHOAL_ASSIGN_OR_RETURN(Plan * plan, FindPlan(mode, batch.examples));
  SHOAL_RETURN_IF_ERROR(arena_.Reserve(plan->program.arena_size_bytes()));
  Program::Buffers buffers = {batch.inputs, parameters, gradients};
  buffers.inputs.push_back(batch.target);  // the training graph's inputs after the model's
  if (training_.weights != kNoValue) {
    FindWeights(batch, mode);
    buffers.inputs.push_back(weights_);
  }
  SHOAL_RETURN_IF_ERROR(plan->program.Run({options_.seed, step}, buffers, arena_, on_variable_done,
                                          options_.on_work_timed));
  return plan;
}

// keras.src.trainers.data_adapters.data_adapter_utils.class_weight_to_sample_weights
void GraphRunner::FindWeights(const Batch& batch, ProgramMode mode) {
  if (batch.weights.empty()) {
    weights_.assign(batch.examples, 1);
  } else {
    weights_.assign(batch.weights.begin(), batch.weights.end());
  }
  if (options_.class_weights.empty() || mode != ProgramMode::kTrain) return;
  const size_t size = batch.target.size() / batch.examples;
  for (int64_t i = 0; i < batch.examples; ++i) {
    const std::span<const float> label = batch.target.subspan(i * size, size);
    const int64_t of_class = size > 1 ? std::max_element(label.begin(), label.end()) - label.begin()
                                      : std::llrint(label[0]);
    const auto weight = options_.class_weights.find(of_class);
    if (weight != options_.class_weights.end()) weights_[i] *= static_cast<float>(weight->second);
  }
}

BatchResult GraphRunner::Results(const Plan& plan, const Batch& batch) const {
  BatchResult result;
  result.examples = batch.examples;
  const float* losses = plan.program.address(plan.loss_per_example);
  for (int64_t i = 0; i < batch.examples; ++i) result.loss_sum += losses[i];
  const Shape shape = BatchShape(training_.prediction, batch.examples);
  result.metric_sums.resize(SumCount(options_.metrics));
  AddToSums(options_.metrics, {shape, Prediction(plan), batch.target, weights_},
            result.metric_sums);
  return result;
}

Shape GraphRunner::BatchShape(ValueId value, int64_t examples) const {
  Shape shape = training_.graph.value(value).shape;
  std::replace(shape.begin(), shape.end(), kBatch, examples);
  return shape;
}

std::span<const float> GraphRunner::Prediction(const Plan& plan) const {
  const Shape shape = BatchShape(training_.prediction, plan.examples);
  return {plan.program.address(plan.prediction), static_cast<size_t>(ElementCount(shape))};
}

}  // namespace shoal
