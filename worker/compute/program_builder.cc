#include "worker/compute/program_builder.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "worker/compute/memory_plan.h"

namespace shoal {
namespace {

// (from, to)
class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(int64_t size_bytes) : size_bytes_(size_bytes) {}
  absl::Status Run(const RunContext&, std::span<void* const> tensors) override {
    std::memcpy(tensors[1], tensors[0], size_bytes_);
    return absl::OkStatus();
  }

 private:
  const int64_t size_bytes_;
};

// (to)
class ZeroKernel : public Kernel {
 public:
  explicit ZeroKernel(int64_t size_bytes) : size_bytes_(size_bytes) {}
  absl::Status Run(const RunContext&, std::span<void* const> tensors) override {
    std::memset(tensors[0], 0, size_bytes_);
    return absl::OkStatus();
  }

 private:
  const int64_t size_bytes_;
};

int64_t SizeBytes(const Shape& shape) {
  return ElementCount(shape) * static_cast<int64_t>(sizeof(float));
}

}  // namespace

ProgramBuilder::ProgramBuilder(const TrainingGraph& training, const ModelLayout& layout,
                               ProgramMode mode, int64_t examples)
    : training_(training),
      examples_(examples),
      training_mode_(mode == ProgramMode::kTrain || mode == ProgramMode::kPredictTraining),
      train_(mode == ProgramMode::kTrain),
      consumers_(training.graph.values().size()),
      bindings_(training.graph.values().size(), -1),
      gradients_(training.graph.variables().size(), -1) {
  SelectNodes(mode);
  const Graph& graph = training_.graph;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId value = graph.inputs()[i];
    bindings_[value] = static_cast<TensorId>(tensors_.size());
    tensors_.push_back({.place = Tensor::Place::kInput,
                        .index = static_cast<int>(i),
                        .size_bytes = SizeBytes(shape(value))});
  }
  for (size_t i = 0; i < graph.variables().size(); ++i) {
    Tensor tensor = {.place = Tensor::Place::kParameter,
                     .index = static_cast<int>(i),
                     .size_bytes = SizeBytes(graph.variables()[i].shape),
                     .offset = layout.variables[i].offset * static_cast<int64_t>(sizeof(float))};
    bindings_[graph.variable_values()[i]] = static_cast<TensorId>(tensors_.size());
    parameters_.push_back(static_cast<TensorId>(tensors_.size()));
    tensors_.push_back(tensor);
    if (!train_ || !graph.variables()[i].pushed()) continue;
    tensor.place = Tensor::Place::kGradient;
    gradients_[i] = static_cast<TensorId>(tensors_.size());
    tensors_.push_back(tensor);
    // What does not reach the loss has a gradient of zero.
    if (training_.pushed_values[i] == kNoValue) {
      AddStep(std::make_unique<ZeroKernel>(tensor.size_bytes), {gradients_[i]});
    }
  }
}

void ProgramBuilder::SelectNodes(ProgramMode mode) {
  const std::vector<Node>& nodes = training_.graph.nodes();
  std::vector<ValueId> results = {training_.prediction};
  if (mode == ProgramMode::kTrain || mode == ProgramMode::kEvaluate) {
    results.push_back(training_.loss_per_example);
  }
  if (mode == ProgramMode::kTrain) {
    const std::vector<ValueId>& pushed = training_.pushed_values;
    results.insert(results.end(), pushed.begin(), pushed.end());
  }
  std::vector<bool> wanted(training_.graph.values().size(), false);
  for (const ValueId result : results) {
    if (result != kNoValue) wanted[result] = true;
  }
  // Backwards, from what is wanted to what that is made of.
  for (int i = static_cast<int>(nodes.size()) - 1; i >= 0; --i) {
    const std::vector<ValueId>& outputs = nodes[i].outputs;
    if (std::none_of(outputs.begin(), outputs.end(), [&](ValueId v) { return wanted[v]; }))
      continue;
    nodes_.push_back(i);
    for (size_t k = 0; k < nodes[i].inputs.size(); ++k) {
      if (!nodes[i].op->Reads(static_cast<int>(k), training_mode_)) continue;
      wanted[nodes[i].inputs[k]] = true;
      consumers_[nodes[i].inputs[k]].push_back(i);
    }
  }
  std::reverse(nodes_.begin(), nodes_.end());
  for (std::vector<int>& consumers : consumers_) std::reverse(consumers.begin(), consumers.end());
}

bool ProgramBuilder::wanted_outside(ValueId value) const {
  if (value == training_.prediction || value == training_.loss_per_example) return true;
  return train_ &&
         std::count(training_.pushed_values.begin(), training_.pushed_values.end(), value) > 0;
}

Shape ProgramBuilder::shape(ValueId value) const {
  Shape shape = training_.graph.value(value).shape;
  std::replace(shape.begin(), shape.end(), kBatch, examples_);
  return shape;
}

TensorId ProgramBuilder::tensor(ValueId value) const {
  SHOAL_CHECK(bound(value), "value ", value);
  return bindings_[value];
}

TensorId ProgramBuilder::Output(ValueId value) {
  if (train_) {
    for (size_t i = 0; i < gradients_.size(); ++i) {
      if (gradients_[i] < 0 || training_.pushed_values[i] != value) continue;
      return bindings_[value] = gradients_[i];
    }
  }
  return bindings_[value] = AddTensor(SizeBytes(shape(value)));
}

void ProgramBuilder::Bind(ValueId value, TensorId tensor) {
  const bool is_gradient = train_ && std::count(training_.pushed_values.begin(),
                                                training_.pushed_values.end(), value) > 0;
  if (!is_gradient) {
    bindings_[value] = tensor;
    return;
  }
  SHOAL_CHECK(tensors_[tensor].layout == nullptr, "tensor ", tensor);
  AddStep(std::make_unique<CopyKernel>(SizeBytes(shape(value))), {tensor, Output(value)});
}

TensorId ProgramBuilder::AddTensor(int64_t size_bytes, std::shared_ptr<const TensorLayout> layout) {
  tensors_.push_back({.size_bytes = size_bytes, .layout = std::move(layout)});
  return static_cast<TensorId>(tensors_.size()) - 1;
}

void ProgramBuilder::AddStep(std::unique_ptr<Kernel> kernel, std::vector<TensorId> tensors) {
  steps_.push_back({std::move(kernel), std::move(tensors), {}, work_});
}

Program ProgramBuilder::Build() && {
  // Variables whose gradient is the value that another variable's is, too.
  for (size_t i = 0; i < gradients_.size(); ++i) {
    if (gradients_[i] < 0 || training_.pushed_values[i] == kNoValue) continue;
    const TensorId computed = tensor(training_.pushed_values[i]);
    if (computed == gradients_[i]) continue;
    AddStep(std::make_unique<CopyKernel>(tensors_[computed].size_bytes), {computed, gradients_[i]});
  }
  for (const ValueId value : {training_.prediction, training_.loss_per_example}) {
    if (value != kNoValue && bound(value)) tensors_[tensor(value)].kept = true;
  }
  int64_t arena_size_bytes = 0;
  PlaceArenaTensors(&arena_size_bytes);
  if (train_) MarkVariablesDone();
  return Program(std::move(tensors_), std::move(steps_), arena_size_bytes);
}

void ProgramBuilder::PlaceArenaTensors(int64_t* arena_size_bytes) {
  const int last_step = static_cast<int>(steps_.size());
  std::vector<Lifetime> by_tensor(tensors_.size(), {.first_step = -1});
  for (int s = 0; s < last_step; ++s) {
    for (const TensorId id : steps_[s].tensors) {
      if (by_tensor[id].first_step < 0) by_tensor[id].first_step = s;
      by_tensor[id].last_step = s;
    }
  }
  std::vector<TensorId> ids;
  std::vector<Lifetime> lifetimes;
  for (TensorId id = 0; id < static_cast<TensorId>(tensors_.size()); ++id) {
    if (tensors_[id].place != Tensor::Place::kArena || by_tensor[id].first_step < 0) continue;
    by_tensor[id].size_bytes = tensors_[id].size_bytes;
    if (tensors_[id].kept) by_tensor[id].last_step = last_step;
    ids.push_back(id);
    lifetimes.push_back(by_tensor[id]);
  }
  const MemoryPlan plan = PlanMemory(lifetimes);
  for (size_t i = 0; i < ids.size(); ++i) tensors_[ids[i]].offset = plan.offsets[i];
  *arena_size_bytes = plan.size_bytes;
}

void ProgramBuilder::MarkVariablesDone() {
  for (size_t variable = 0; variable < gradients_.size(); ++variable) {
    if (gradients_[variable] < 0) continue;
    // The gradient is written by some step, so that the search ends.
    int step = static_cast<int>(steps_.size()) - 1;
    const auto touches = [&](int s) {
      return std::any_of(steps_[s].tensors.begin(), steps_[s].tensors.end(), [&](TensorId id) {
        return id == parameters_[variable] || id == gradients_[variable];
      });
    };
    while (step > 0 && !touches(step)) --step;
    steps_[step].variables_done.push_back(static_cast<int>(variable));
  }
}

}  // namespace shoal
