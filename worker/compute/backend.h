#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/compute/program.h"
#include "worker/compute/program_builder.h"

namespace shoal {

// Turns graphs into programs: a kernel per node, from a table of the backend's own. Thread-safe
// when constant.
class Backend {
 public:
  virtual ~Backend() = default;

  // An equal model that this backend computes faster: same inputs, variables and outputs.
  virtual absl::StatusOr<Graph> Rewrite(const Graph& model) const { return model; }

  // Adds the steps of all of builder.nodes(). An op without kernel is kUnimplemented, by name.
  virtual absl::Status AddSteps(ProgramBuilder& builder) const = 0;

  // Called on the thread that runs or builds programs, before it does: its threads for what
  // follows.
  virtual void UseThreads(int threads) const = 0;
};

// "reference" or "cpu"; another name is kInvalidArgument with the nearest one.
absl::StatusOr<std::unique_ptr<Backend>> CreateBackend(const std::string& name);

}  // namespace shoal
