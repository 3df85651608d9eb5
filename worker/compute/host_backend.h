#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/arena.h"
#include "worker/compute/backend.h"
#include "worker/compute/program_builder.h"

namespace shoal {

// A backend whose kernels read and write the memory of the machine: its programs run where the
// caller's tensors lie and copy none. What they keep between their steps lies in one arena, in
// which they run in turn.
class HostBackend : public Backend {
 public:
  absl::StatusOr<std::unique_ptr<Executable>> Compile(Plan plan) final;
  absl::Status Poison(int64_t size_bytes) final;

 protected:
  // Adds the steps of all of builder.plan().nodes(). CheckKernels has been asked about the graph.
  // The prediction must lie row-major in the end.
  virtual absl::Status AddSteps(ProgramBuilder& builder) const = 0;

 private:
  Arena arena_;
};

}  // namespace shoal
