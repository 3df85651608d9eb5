#pragma once

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "worker/compute/cuda/kernels/run_on_cpu.h"
#include "worker/compute/cuda/program/cuda_program_builder.h"

#ifdef __CUDACC__
#include "worker/compute/cuda/program/launch.h"
#endif

// For files that nvcc compiles in the cuda preset, and the host's compiler in all others. This lets
// every preset test the steps that they add to a program.

namespace shoal::cuda {

// The place of a tensor among those of a step, and the type of its elements. None by default.
template <typename Element>
struct TensorHandle {
  int place = -1;
};

// Collects the tensors of a step that is about to be added.
class TensorList {
 public:
  template <typename Element = float>
  TensorHandle<Element> Add(TensorId tensor) {
    tensors_.push_back(tensor);
    return {static_cast<int>(tensors_.size()) - 1};
  }
  std::vector<TensorId> Take() && { return std::move(tensors_); }

 private:
  std::vector<TensorId> tensors_;
};

// A step's tensors at run time, in the order of AddStep.
class StepTensors {
 public:
  StepTensors(const RunContext* context, std::span<void* const> tensors)
      : context_(context), tensors_(tensors) {}

  // The context in the device's memory.
  const RunContext* context() const { return context_; }
  // The address of the tensor; null for none.
  template <typename Element>
  Element* operator[](TensorHandle<Element> handle) const {
    return handle.place < 0 ? nullptr : At<Element>(handle.place);
  }
  // Tensor i, for steps with one input and one output or fewer. All others take handles, whose
  // types the compiler checks.
  float* operator[](int i) const { return At<float>(i); }
  template <typename Element>
  Element* At(int i) const {
    return static_cast<Element*>(tensors_[i]);
  }

 private:
  const RunContext* const context_;
  const std::span<void* const> tensors_;
};

// A step that runs one kernel.
template <typename Make>
class KernelStep : public Kernel {
 public:
  KernelStep(const NodeName& node, const Stream* stream, Make make)
      : op_(node.op), layer_(node.layer), stream_(stream), make_(std::move(make)) {}

  absl::Status Run(const RunContext* context, std::span<void* const> tensors) override {
    const auto kernel = make_(StepTensors(context, tensors));
#ifdef __CUDACC__
    if (stream_ != nullptr) return Launch(kernel, *stream_, {.op = op_, .layer = layer_});
#endif
    RunOnCpu(kernel, random_);
    return absl::OkStatus();
  }

 private:
  const std::string op_, layer_;
  const Stream* const stream_;
  const Make make_;
  std::minstd_rand random_;
};

// Appends a step that runs the kernel that `make` returns for its tensors (StepTensors).
template <typename Make>
void AddKernel(const NodeName& name, std::vector<TensorId> tensors, Make make,
               CudaProgramBuilder& program) {
  program.builder().AddStep(
      std::make_unique<KernelStep<Make>>(name, program.target().stream, std::move(make)),
      std::move(tensors));
}
template <typename Make>
void AddKernel(const Node& node, std::vector<TensorId> tensors, Make make,
               CudaProgramBuilder& program) {
  AddKernel(CudaProgramBuilder::name(node), std::move(tensors), std::move(make), program);
}

}  // namespace shoal::cuda
