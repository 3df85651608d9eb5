#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/compute/executable.h"
#include "worker/compute/pinned_buffer.h"
#include "worker/compute/plan/plan.h"

namespace shoal {

// A device, and how graphs are computed there: a kernel per node, from a table of the backend's
// own. It owns the memory of the device that its executables run in. Those that there are:
// backends.h. Thread-safe when constant.
class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu": for messages.
  virtual std::string name() const = 0;

  // The ops that it has kernels for, by Op::type().
  virtual std::set<std::string> op_types() const = 0;

  // What it computes in when a model asks for it; where a model asks for more, in float32. One that
  // computes in float16 has its programs divide the gradients by TrainingGraph::loss_scale, where
  // there is one, and say whether they are finite (ProgramBuilder::SetGradientCheck).
  virtual std::set<ComputeDtype> compute_dtypes() const { return {ComputeDtype::kFloat32}; }

  // An equal model that this backend computes faster: same inputs, variables and outputs.
  virtual absl::StatusOr<Graph> Rewrite(const Graph& model) const { return model; }

  // Makes a plan ready to run. CheckKernels has been asked about its graph.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Compile(Plan plan) = 0;

  // Whether its executables run in the memory of this machine and not in a device's own.
  virtual bool runs_in_machine_memory() const { return true; }

  // Whether its executables add up the gradients of the parts of a batch (RunBuffers::part), with
  // plans that say that there are some.
  virtual bool adds_up_parts() const { return false; }

  // Bytes of a device's own memory that executables may take altogether: what is free, and what
  // they have. Without `trains`, those that do not train: what is held for gradients stays.
  virtual absl::StatusOr<int64_t> DeviceBytes(bool /*trains*/) const { return 0; }

  // Says that `buffer`, parameters or gradients that runs are given again and again, stays where it
  // is for as long as what this gives is held: a device then copies from and to it while this
  // machine does other things. Null where runs compute in the caller's memory. To be let go of
  // before the buffer and the backend.
  virtual absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> /*buffer*/) {
    return nullptr;
  }

  // Called on the thread that compiles or runs, before it does: its threads for what
  // follows.
  virtual void UseThreads(int threads) const = 0;

  // For tests: fills the memory that runs share, as much as there is and `size_bytes` at least,
  // with not-a-number. A run must write there before it reads.
  virtual absl::Status Poison(int64_t size_bytes) = 0;
};

// kUnimplemented when `backend` has no kernel for some ops of `graph`: names each, with the layers
// that need it.
absl::Status CheckKernels(const Backend& backend, const Graph& graph);

// A line about the layers of `model` that are computed in float32 although their dtype policy says
// otherwise, because `backend` lacks that precision; empty where there are none.
std::string DescribePrecision(const Backend& backend, const Graph& model);

}  // namespace shoal
