#include "worker/compute/program/program.h"

#include <chrono>

#include "common/base/status_macros.h"
#include "worker/compute/program/tensor_addresses.h"

namespace shoal {
namespace {

// Kernels take tensors without const, but never write to inputs or parameters.
char* Writable(const void* address) { return static_cast<char*>(const_cast<void*>(address)); }

}  // namespace

absl::Status Program::Run(const RunContext& context, const RunBuffers& buffers, const Arena& arena,
                          const std::function<void(int variable)>& on_variable_done,
                          const OnStepTimed& on_step_timed) {
  using Clock = std::chrono::steady_clock;
  FindAddresses(
      tensors_,
      {arena.data(), Writable(buffers.parameters.data()), Writable(buffers.gradients.data())},
      [&](int input) { return Writable(buffers.inputs[input].floats().data()); }, addresses_);
  std::vector<void*> step_addresses;
  Clock::time_point begin;
  if (on_step_timed) begin = Clock::now();
  for (const Step& step : steps_) {
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

}  // namespace shoal
