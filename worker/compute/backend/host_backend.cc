#include "worker/compute/backend/host_backend.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/compute/program/batch_sums.h"
#include "worker/compute/program/tensor_addresses.h"

namespace shoal {
namespace {

// (from, to)
class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(int64_t size_bytes) : size_bytes_(size_bytes) {}
  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
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
  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    std::memset(tensors[0], 0, size_bytes_);
    return absl::OkStatus();
  }

 private:
  const int64_t size_bytes_;
};

class HostMoveKernels : public MoveKernels {
 public:
  std::unique_ptr<Kernel> Copy(int64_t size_bytes) const override {
    return std::make_unique<CopyKernel>(size_bytes);
  }
  std::unique_ptr<Kernel> Zero(int64_t size_bytes) const override {
    return std::make_unique<ZeroKernel>(size_bytes);
  }
};

// Kernels take tensors without const, but never write to inputs or parameters.
char* Writable(const void* address) { return static_cast<char*>(const_cast<void*>(address)); }

// A program whose steps run on the host, in an arena that it shares.
class HostExecutable : public Executable {
 public:
  HostExecutable(Plan plan, Program program, Arena* arena)
      : plan_(std::move(plan)),
        program_(std::move(program)),
        arena_(*arena),
        addresses_(program_.tensors().size()) {}

  int64_t memory_bytes() const override { return program_.arena_size_bytes(); }

  absl::StatusOr<BatchResult> Run(const RunContext& context, const RunBuffers& buffers,
                                  const std::function<void(int variable)>& on_variable_done,
                                  const OnStepTimed& on_step_timed) override {
    SHOAL_RETURN_IF_ERROR(arena_.Reserve(program_.arena_size_bytes()));
    SHOAL_RETURN_IF_ERROR(RunSteps(context, buffers, on_variable_done, on_step_timed));
    const std::span<const float> prediction = Values(program_.results().prediction);
    if (!buffers.prediction.empty()) {
      std::copy(prediction.begin(), prediction.end(), buffers.prediction.begin());
    }
    if (!plan_.has_loss()) return BatchResult{.examples = plan_.examples()};
    return SumsOf(plan_, buffers, Values(program_.results().losses), prediction);
  }

 private:
  // Awaits the parameters that a step is the first to read before that step.
  absl::Status RunSteps(const RunContext& context, const RunBuffers& buffers,
                        const std::function<void(int variable)>& on_variable_done,
                        const OnStepTimed& on_step_timed);
  // The values of the last run.
  std::span<const float> Values(TensorId id) const {
    return {static_cast<const float*>(addresses_[id]),
            program_.tensors()[id].size_bytes / sizeof(float)};
  }

  const Plan plan_;
  Program program_;
  Arena& arena_;                  // the backend's
  std::vector<void*> addresses_;  // by tensor, of the last run
};

absl::Status HostExecutable::RunSteps(const RunContext& context, const RunBuffers& buffers,
                                      const std::function<void(int variable)>& on_variable_done,
                                      const OnStepTimed& on_step_timed) {
  using Clock = std::chrono::steady_clock;
  FindAddresses(
      program_.tensors(),
      {arena_.data(), Writable(buffers.parameters.data()), Writable(buffers.gradients.data())},
      [&](int input) { return Writable(buffers.inputs[input].floats().data()); }, addresses_);
  std::vector<void*> step_addresses;
  Clock::time_point begin;
  if (on_step_timed) begin = Clock::now();
  for (const Program::Step& step : program_.steps()) {
    if (buffers.arriving != nullptr) {
      for (const int variable : step.variables_read)
        SHOAL_RETURN_IF_ERROR(buffers.arriving->Await(variable));
      if (on_step_timed) begin = Clock::now();
    }
    step_addresses.clear();
    for (const TensorId id : step.tensors) step_addresses.push_back(addresses_[id]);
    SHOAL_RETURN_IF_ERROR(step.kernel->Run(&context, step_addresses));
    if (on_step_timed) {
      const Clock::time_point end = Clock::now();
      on_step_timed(step.work, end - begin);
      begin = end;
    }
    if (!on_variable_done) continue;
    for (const int variable : step.variables_done) on_variable_done(variable);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> HostBackend::CompileNodes(Plan plan) {
  const HostMoveKernels moves;
  ProgramBuilder builder(plan, moves);
  SHOAL_RETURN_IF_ERROR(AddSteps(builder));
  Program program = std::move(builder).Build();
  return std::make_unique<HostExecutable>(std::move(plan), std::move(program), &arena_);
}

absl::Status HostBackend::Poison(int64_t size_bytes) {
  SHOAL_RETURN_IF_ERROR(arena_.Reserve(size_bytes));
  if (arena_.size_bytes() > 0) std::memset(arena_.data(), 0xff, arena_.size_bytes());
  return absl::OkStatus();
}

}  // namespace shoal
