#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/arriving_parameters.h"
#include "worker/compute/device/gradient_sums.h"
#include "worker/compute/model_runner.h"
#include "worker/compute/plan/transfers.h"
#include "worker/compute/run_context.h"

namespace shoal {

// The caller's memory for one run, on the host.
struct RunBuffers {
  std::vector<InputValues> inputs = {};  // in the order of the graph's inputs
  std::span<const float> parameters = {};
  ArrivingParameters* arriving = nullptr;  // who says that they are there; null: all of them are
  // They are those of the run before, of the same backend in the same mode: a device has them.
  bool same_parameters = false;
  // The batch is that of `next_inputs` of the run before, of this executable: a device has it. What
  // else belongs to a run, weights and loss scale, is new all the same.
  bool same_inputs = false;
  // Of the batch that this executable runs next, in the order of the graph's inputs: the model's
  // and the target; empty: not known. Read before Run returns.
  std::vector<InputValues> next_inputs = {};
  std::span<float> gradients = {};  // of a plan that trains
  // Of training with a part of a batch, where the backend adds up parts: its gradients times
  // RunContext::share are added to those of the parts before, unless it begins the sums, and
  // `gradients` are these, written in the run of the last part alone.
  enum class Part { kNone, kNotLast, kLast };
  Part part = Part::kNone;
  // Of a device, whose gradients, or their sums over the parts, may be added up with others': then
  // the sum is copied to rank 0's `gradients`, and of the others a variable is done when its
  // gradient is in that.
  SumRank sum = {};
  std::span<float> prediction = {};  // where the model's output is wanted; empty: nowhere
};

// Called after each step with what it computed and how long it took.
using OnStepTimed = std::function<void(const std::string& work, std::chrono::nanoseconds)>;

// A plan made ready on a device, to be run as often as is wanted: kernels chosen, memory planned.
// Made by Backend::Compile, which it does not outlive. Not thread-safe, nor are two of one backend:
// they share its memory.
class Executable {
 public:
  virtual ~Executable() = default;

  // Memory that its runs take on the device for what lies between their steps, all of the backend's
  // the same.
  virtual int64_t memory_bytes() const = 0;

  // Memory of a device's own that its runs take altogether; 0 where they take the machine's.
  virtual int64_t device_bytes() const { return 0; }
  // Takes it, as else the first run does. kResourceExhausted where there is not so much.
  virtual absl::Status TakeMemory() { return absl::OkStatus(); }

  // The pieces of the gradients in the order in which they can be added up with other devices'
  // (RunBuffers::sum); empty where they cannot.
  virtual std::vector<Transfer::Range> SummedRanges() const { return {}; }

  // Runs the plan on `buffers` and gives the sums of its loss and metrics, where it has a loss.
  // `on_variable_done` is ModelRunner::Train's. Both callbacks may be empty: without
  // `on_step_timed` no clock is read.
  virtual absl::StatusOr<BatchResult> Run(const RunContext& context, const RunBuffers& buffers,
                                          const std::function<void(int variable)>& on_variable_done,
                                          const OnStepTimed& on_step_timed) = 0;
};

}  // namespace shoal
