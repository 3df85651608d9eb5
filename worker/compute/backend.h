#pragma once

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/compute/program_builder.h"

namespace shoal {

// Turns graphs into programs: a kernel per node, from a table of the backend's own. Those that
// there are: backends.h. Thread-safe when constant.
class Backend {
 public:
  virtual ~Backend() = default;

  // "cpu": for messages.
  virtual std::string name() const = 0;

  // The ops that it has kernels for, by Op::type().
  virtual std::set<std::string> op_types() const = 0;

  // What it computes in when a model asks for it; where a model asks for more, in float32.
  virtual std::set<ComputeDtype> compute_dtypes() const { return {ComputeDtype::kFloat32}; }

  // An equal model that this backend computes faster: same inputs, variables and outputs.
  virtual absl::StatusOr<Graph> Rewrite(const Graph& model) const { return model; }

  // Adds the steps of all of builder.nodes(). CheckKernels has been asked about the graph.
  virtual absl::Status AddSteps(ProgramBuilder& builder) const = 0;

  // Called on the thread that runs or builds programs, before it does: its threads for what
  // follows.
  virtual void UseThreads(int threads) const = 0;
};

// kUnimplemented when `backend` has no kernel for some ops of `graph`: names each, with the layers
// that need it.
absl::Status CheckKernels(const Backend& backend, const Graph& graph);

// A line about the layers of `model` that are computed in float32 although their dtype policy says
// otherwise, because `backend` lacks that precision; empty where there are none.
std::string DescribePrecision(const Backend& backend, const Graph& model);

}  // namespace shoal
