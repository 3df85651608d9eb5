#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/compute/plan/plan.h"
#include "worker/compute/program/executable.h"
#include "worker/compute/program/pinned_buffer.h"

namespace shoal {

// A device and the way it computes graphs: one kernel per node, from a table of the backend's own.
// The backend owns the device memory that its executables run in. registry/backends.h lists the
// backends. Thread-safe when constant.
class Backend {
 public:
  virtual ~Backend() = default;

  // The name for messages, such as "cpu".
  virtual std::string name() const = 0;

  // Whether the backend has a kernel for the node: for its op, and in its compute dtype. A node of
  // a dtype that it lacks is computed in float32. A node of a fused op comes into plans only where
  // the backend has a kernel for it (plan/passes). The programs of a backend with float16 divide
  // the gradients by TrainingGraph::loss_scale, if the graph has one, and report whether they are
  // finite (ProgramBuilder::SetGradientCheck).
  virtual bool Supports(const Node& node) const = 0;

  // Whether the backend computes RewriteModel(model) in place of a model. The reference computes
  // each node as the model has it.
  virtual bool rewrites_models() const { return true; }

  // Makes a plan ready to run, after all passes. Requires CheckKernels of its graph to be OK.
  absl::StatusOr<std::unique_ptr<Executable>> Compile(Plan plan);

  // Whether its executables run in the memory of this machine rather than in a device's own.
  virtual bool runs_in_machine_memory() const { return true; }

  // Whether its executables add up the gradients of the parts of a batch (RunBuffers::part). It
  // needs plans that are compiled for parts.
  virtual bool sums_parts() const { return false; }

  // Returns the bytes of the device's own memory that executables may take in total: the free bytes
  // and those that the executables hold. Without `trains`, counts for executables that do not
  // train: the memory held for gradients stays taken.
  virtual absl::StatusOr<int64_t> DeviceBytes(bool /*trains*/) const { return 0; }

  // Pins `buffer`, which holds parameters or gradients for many runs, as long as the result is
  // held. The buffer must not move in that time. A device then copies from and to it while this
  // machine does other work. Returns null if runs compute in the caller's memory. Release the
  // result before the buffer and the backend.
  virtual absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> /*buffer*/) {
    return nullptr;
  }

  // Sets the threads for the compilations and runs that follow. Called before them, on the thread
  // that compiles or runs.
  virtual void UseThreads(int threads) const = 0;

  // For tests: fills the memory that runs share with not-a-number: all of it, and at least
  // `size_bytes`. A run must write to that memory before it reads it.
  virtual absl::Status Poison(int64_t size_bytes) = 0;

 protected:
  // Makes a plan ready to run whose nodes are final.
  virtual absl::StatusOr<std::unique_ptr<Executable>> CompileNodes(Plan plan) = 0;
};

// kUnimplemented if `backend` lacks a kernel for some ops of `graph`: names each op, with the
// layers that need it.
absl::Status CheckKernels(const Backend& backend, const Graph& graph);

// Returns a line about the layers of `model` with an op that is computed in float32, against their
// dtype policy, because `backend` has no kernel for it in that type. Empty if there are none. Names
// no layer that has a kernel, although a CPU also computes small Dense layers and convolutions of
// few channels in float32, where that is faster.
std::string DescribePrecision(const Backend& backend, const Graph& model);

}  // namespace shoal
