#include "worker/compute/program/program_builder.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/training_metric/metric.h"
#include "worker/compute/plan/memory_plan.h"
#include "worker/compute/program/gradient_check.h"

namespace shoal {
namespace {

int64_t SizeBytes(const Shape& shape, ComputeDtype type = ComputeDtype::kFloat32) {
  return ElementCount(shape) * SizeOf(type);
}

}  // namespace

ProgramBuilder::ProgramBuilder(const Plan& plan, const MoveKernels& moves)
    : plan_(plan),
      moves_(moves),
      bindings_(plan.graph().values().size(), -1),
      gradients_(plan.graph().variables().size(), -1) {
  const Graph& graph = plan_.graph();
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId value = graph.inputs()[i];
    bindings_[value] = static_cast<TensorId>(tensors_.size());
    tensors_.push_back({.place = Tensor::Place::kInput,
                        .index = static_cast<int>(i),
                        .size_bytes = SizeBytes(shape(value))});
  }
  for (size_t i = 0; i < graph.variables().size(); ++i) {
    Tensor tensor = {
        .place = Tensor::Place::kParameter,
        .index = static_cast<int>(i),
        .size_bytes = SizeBytes(graph.variables()[i].shape),
        .offset = plan.layout().variables[i].offset * static_cast<int64_t>(sizeof(float))};
    bindings_[graph.variable_values()[i]] = static_cast<TensorId>(tensors_.size());
    parameters_.push_back(static_cast<TensorId>(tensors_.size()));
    tensors_.push_back(tensor);
    if (!plan.computes_gradients() || !graph.variables()[i].pushed()) continue;
    tensor.place = Tensor::Place::kGradient;
    gradients_[i] = static_cast<TensorId>(tensors_.size());
    tensors_.push_back(tensor);
    // A variable that the loss does not depend on has a zero gradient.
    if (plan_.training_graph().pushed_values[i] == kNoValue) {
      AddStep(moves_.Zero(tensor.size_bytes), {gradients_[i]});
    }
  }
}

bool ProgramBuilder::is_pushed(ValueId value) const {
  const std::vector<ValueId>& pushed = plan_.training_graph().pushed_values;
  return plan_.computes_gradients() && std::count(pushed.begin(), pushed.end(), value) > 0;
}

TensorId ProgramBuilder::tensor(ValueId value) const {
  SHOAL_CHECK(bound(value), "value ", value);
  return bindings_[value];
}

TensorId ProgramBuilder::Output(ValueId value, ComputeDtype type) {
  SHOAL_CHECK(type == ComputeDtype::kFloat32 || !plan_.wanted_outside(value), "value ", value);
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (gradients_[i] < 0 || plan_.training_graph().pushed_values[i] != value) continue;
    return bindings_[value] = gradients_[i];
  }
  return bindings_[value] = AddTensor(SizeBytes(shape(value), type), type);
}

void ProgramBuilder::Bind(ValueId value, TensorId tensor) {
  SHOAL_CHECK(tensors_[tensor].type == ComputeDtype::kFloat32 || !plan_.wanted_outside(value),
              "value ", value);
  if (!is_pushed(value)) {
    bindings_[value] = tensor;
    return;
  }
  SHOAL_CHECK(tensors_[tensor].layout == nullptr, "tensor ", tensor);
  AddStep(moves_.Copy(SizeBytes(shape(value))), {tensor, Output(value)});
}

TensorId ProgramBuilder::AddTensor(int64_t size_bytes, ComputeDtype type,
                                   std::shared_ptr<const TensorLayout> layout) {
  tensors_.push_back({.size_bytes = size_bytes, .type = type, .layout = std::move(layout)});
  return static_cast<TensorId>(tensors_.size()) - 1;
}

void ProgramBuilder::AddStep(std::unique_ptr<Kernel> kernel, std::vector<TensorId> tensors) {
  steps_.push_back({.kernel = std::move(kernel), .tensors = std::move(tensors), .work = work_});
}

void ProgramBuilder::SetSums(TensorId sums) {
  const int64_t expected = (1 + SumCount(plan_.metrics())) * static_cast<int64_t>(sizeof(double));
  SHOAL_CHECK(tensors_[sums].size_bytes == expected, "bytes ", tensors_[sums].size_bytes);
  sums_ = sums;
}

void ProgramBuilder::SetGradientCheck(TensorId check) {
  SHOAL_CHECK(tensors_[check].size_bytes == sizeof(GradientCheck), "bytes ",
              tensors_[check].size_bytes);
  check_ = check;
}

const std::vector<TensorId>& ProgramBuilder::CompleteGradients() {
  if (std::exchange(gradients_complete_, true)) return gradients_;
  // Several variables may share one gradient value: copy it to each of the others.
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (gradients_[i] < 0 || plan_.training_graph().pushed_values[i] == kNoValue) continue;
    const TensorId computed = tensor(plan_.training_graph().pushed_values[i]);
    if (computed == gradients_[i]) continue;
    AddStep(moves_.Copy(tensors_[computed].size_bytes), {computed, gradients_[i]});
  }
  return gradients_;
}

Program ProgramBuilder::Build() && {
  CompleteGradients();
  const TrainingGraph& training = plan_.training_graph();
  Program::Results results = {
      .prediction = tensor(training.prediction), .sums = sums_, .check = check_};
  if (plan_.has_loss()) results.losses = tensor(training.loss_per_example);
  for (const TensorId id : {results.prediction, results.losses, results.sums, results.check}) {
    if (id >= 0) tensors_[id].kept = true;
  }
  std::vector<std::vector<TensorId>> touched;
  for (const Program::Step& step : steps_) touched.push_back(step.tensors);
  const std::vector<Lifetime> lifetimes = FindLifetimes(touched, static_cast<int>(tensors_.size()));
  MarkVariables(lifetimes);
  const int64_t arena_size_bytes = PlaceArenaTensors(lifetimes);
  return Program(std::move(tensors_), std::move(steps_), results, arena_size_bytes);
}

int64_t ProgramBuilder::PlaceArenaTensors(std::vector<Lifetime> by_tensor) {
  std::vector<TensorId> ids;
  std::vector<Lifetime> lifetimes;
  for (TensorId id = 0; id < static_cast<TensorId>(tensors_.size()); ++id) {
    if (tensors_[id].place != Tensor::Place::kArena || by_tensor[id].first_step < 0) continue;
    by_tensor[id].size_bytes = tensors_[id].size_bytes;
    if (tensors_[id].kept) by_tensor[id].last_step = static_cast<int>(steps_.size());
    ids.push_back(id);
    lifetimes.push_back(by_tensor[id]);
  }
  const MemoryPlan plan = PlanMemory(lifetimes);
  for (size_t i = 0; i < ids.size(); ++i) tensors_[ids[i]].offset = plan.offsets[i];
  return plan.size_bytes;
}

void ProgramBuilder::MarkVariables(const std::vector<Lifetime>& lifetimes) {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const int variable = static_cast<int>(i);
    const Lifetime& value = lifetimes[parameters_[i]];
    if (value.first_step >= 0) steps_[value.first_step].variables_read.push_back(variable);
    if (gradients_[i] < 0) continue;
    // Every gradient has a step that writes it.
    const int last = std::max(value.last_step, lifetimes[gradients_[i]].last_step);
    steps_[last].variables_done.push_back(variable);
  }
}

}  // namespace shoal
