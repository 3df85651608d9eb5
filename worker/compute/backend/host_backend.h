#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/program/arena.h"
#include "worker/compute/program/program_builder.h"

namespace shoal {

// A backend whose kernels read and write the memory of the machine. Its programs use the caller's
// tensors in place and copy none. Values between steps lie in one arena, which the programs use in
// turn.
class HostBackend : public Backend {
 public:
  absl::Status Poison(int64_t size_bytes) final;

 protected:
  absl::StatusOr<std::unique_ptr<Executable>> CompileNodes(Plan plan) final;
  // Adds the steps for all of builder.plan().nodes(). Requires CheckKernels of the graph to be OK.
  // At the end the prediction must lie row-major.
  virtual absl::Status AddSteps(ProgramBuilder& builder) const = 0;

 private:
  Arena arena_;
};

}  // namespace shoal
