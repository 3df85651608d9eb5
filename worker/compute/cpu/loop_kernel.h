#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "worker/compute/cpu/cpu_program.h"
#include "worker/compute/cpu/loops.h"
#include "worker/compute/cpu/vector_math.h"

namespace shoal::cpu {

// A step that loops over equal elements (or rows), split into ranges over the threads. Calls
// run(context, data, begin, end), with the addresses of the step's tensors in `data`.
template <typename RunRange>
class LoopKernel : public Kernel {
 public:
  LoopKernel(int64_t count, int64_t grain, size_t tensors, RunRange run)
      : count_(count), grain_(grain), run_(std::move(run)), data_(tensors) {}

  absl::Status Run(const RunContext* context, std::span<void* const> tensors) override {
    for (size_t i = 0; i < tensors.size(); ++i) data_[i] = static_cast<float*>(tensors[i]);
    ParallelFor(count_, grain_,
                [&](int64_t begin, int64_t end) { run_(*context, data_.data(), begin, end); });
    return absl::OkStatus();
  }

 private:
  const int64_t count_;
  const int64_t grain_;
  const RunRange run_;
  std::vector<float*> data_;
};

// Appends a LoopKernel over `count` elements. `grain` is the min number for another thread.
template <typename RunRange>
void AddLoopStep(int64_t count, int64_t grain, std::vector<TensorId> tensors, RunRange run,
                 CpuProgram& program) {
  auto kernel =
      std::make_unique<LoopKernel<RunRange>>(count, grain, tensors.size(), std::move(run));
  program.builder().AddStep(std::move(kernel), std::move(tensors));
}

// The same over elements, in ranges of whole vectors: for functions of vector_math.h.
template <typename RunRange>
void AddVectorLoopStep(int64_t count, std::vector<TensorId> tensors, RunRange run,
                       CpuProgram& program) {
  AddLoopStep((count + kVectorBlock - 1) / kVectorBlock, kElementGrain / kVectorBlock,
              std::move(tensors),
              [run = std::move(run), count](const RunContext& context, float* const* data,
                                            int64_t begin, int64_t end) {
                run(context, data, begin * kVectorBlock, std::min(count, end * kVectorBlock));
              },
              program);
}

}  // namespace shoal::cpu
