#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "worker/compute/cpu/cpu_program_builder.h"
#include "worker/compute/cpu/loops.h"
#include "worker/compute/cpu/vector_math.h"

namespace shoal::cpu {

// The addresses of a step's tensors, in the order of AddLoopStep.
class LoopTensors {
 public:
  explicit LoopTensors(std::span<void* const> addresses) : addresses_(addresses) {}

  template <typename Element>
  Element* At(size_t i) const {
    return static_cast<Element*>(addresses_[i]);
  }
  float* operator[](size_t i) const { return At<float>(i); }

 private:
  const std::span<void* const> addresses_;
};

// A step that loops over equal elements (or rows), split into ranges over the threads. Calls
// run(context, data, begin, end), with the step's LoopTensors in `data`.
template <typename RunRange>
class LoopKernel : public Kernel {
 public:
  LoopKernel(int64_t count, int64_t grain, RunRange run)
      : count_(count), grain_(grain), run_(std::move(run)) {}

  absl::Status Run(const RunContext* context, std::span<void* const> tensors) override {
    const LoopTensors data(tensors);
    ParallelFor(count_, grain_,
                [&](int64_t begin, int64_t end) { run_(*context, data, begin, end); });
    return absl::OkStatus();
  }

 private:
  const int64_t count_;
  const int64_t grain_;
  const RunRange run_;
};

// Appends a LoopKernel over `count` elements. `grain` is the min number for another thread.
template <typename RunRange>
void AddLoopStep(int64_t count, int64_t grain, std::vector<TensorId> tensors, RunRange run,
                 CpuProgramBuilder& program) {
  auto kernel = std::make_unique<LoopKernel<RunRange>>(count, grain, std::move(run));
  program.builder().AddStep(std::move(kernel), std::move(tensors));
}

// The same over elements, in ranges of whole vectors: for functions of vector_math.h.
template <typename RunRange>
void AddVectorLoopStep(int64_t count, std::vector<TensorId> tensors, RunRange run,
                       CpuProgramBuilder& program) {
  AddLoopStep((count + kVectorBlock - 1) / kVectorBlock, kElementGrain / kVectorBlock,
              std::move(tensors),
              [run = std::move(run), count](const RunContext& context, const LoopTensors& data,
                                            int64_t begin, int64_t end) {
                run(context, data, begin * kVectorBlock, std::min(count, end * kVectorBlock));
              },
              program);
}

}  // namespace shoal::cpu
