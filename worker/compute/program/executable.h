#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/plan/transfers.h"
#include "worker/compute/program/arriving_parameters.h"
#include "worker/compute/program/batch.h"
#include "worker/compute/program/gradient_reducer.h"
#include "worker/compute/program/run_context.h"

namespace shoal {

// The caller's memory for one run, on the host.
struct RunBuffers {
  std::vector<InputValues> inputs = {};  // in the order of the graph's inputs
  std::span<const float> parameters = {};
  ArrivingParameters* arriving = nullptr;  // reports their arrival; null: all have arrived
  // The parameters are those of the last run of the same backend in the same mode: a device still
  // has them.
  bool same_parameters = false;
  // The batch is the one that the last run of this executable got as `next_inputs`: a device still
  // has it. All other inputs of the run, weights and loss scale, are new all the same.
  bool same_inputs = false;
  // The batch that this executable runs next, in the order of the graph's inputs: the model's
  // inputs and the target. Empty: not known. Run reads it before it returns.
  std::vector<InputValues> next_inputs = {};
  std::span<float> gradients = {};  // for a plan that trains
  // For training on a part of a batch, if the backend adds up parts. The run multiplies the part's
  // gradients by RunContext::share and adds them to those of the parts before, unless it begins the
  // sums. Only the run of the last part writes `gradients`, which are then the sums.
  enum class Part { kNone, kNotLast, kLast };
  Part part = Part::kNone;
  // For a device whose gradients, or their sums over the parts, may be added up with those of other
  // devices. The total is then copied to rank 0's `gradients`. On the other ranks a variable is
  // done as soon as its gradient is in the total.
  SumRank sum = {};
  std::span<float> prediction = {};  // where to write the model's output; empty: nowhere
};

// Called after each step with its work and its duration.
using OnStepTimed = std::function<void(const std::string& work, std::chrono::nanoseconds)>;

// A plan compiled for a device, to run any number of times: kernels chosen, memory planned. Made by
// Backend::Compile; the backend must outlive it. Not thread-safe. Two executables of one backend
// must not run at once either: they share its memory.
class Executable {
 public:
  virtual ~Executable() = default;

  // Device memory for the values between the steps of its runs. All executables of a backend share
  // it.
  virtual int64_t memory_bytes() const = 0;

  // The device's own memory that its runs take in total; 0 if they take the machine's.
  virtual int64_t device_bytes() const { return 0; }
  // Takes that memory now; otherwise the first run takes it. kResourceExhausted if there is too
  // little.
  virtual absl::Status TakeMemory() { return absl::OkStatus(); }

  // The pieces of the gradients in the order in which they can be added up with other devices'
  // (RunBuffers::sum). Empty if they cannot.
  virtual std::vector<Transfer::Range> SummedRanges() const { return {}; }

  // Runs the plan on `buffers` and returns the sums of its loss and metrics, if it has a loss.
  // `on_variable_done` is as for ModelRunner::Train. Both callbacks may be empty; without
  // `on_step_timed` the run reads no clock.
  virtual absl::StatusOr<BatchResult> Run(const RunContext& context, const RunBuffers& buffers,
                                          const std::function<void(int variable)>& on_variable_done,
                                          const OnStepTimed& on_step_timed) = 0;
};

}  // namespace shoal
