#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend/backend.h"

namespace shoal {

// Returns the backends for the suites that every backend must pass: TestedBackends();
// "fake_device", the reference's kernels behind the copies and streams of a FakeDevice;
// "cuda_on_cpu" (CudaOnCpuBackend); and, in the cuda preset, "cuda" on the first GPU.
std::vector<std::string> SuiteBackends();
// Returns OK if this machine can test the backend; else the reason.
absl::Status CheckDevice(const std::string& name);
absl::StatusOr<std::unique_ptr<Backend>> CreateSuiteBackend(const std::string& name);

// Returns those that compute in bfloat16 and float16 if a model requests it.
std::vector<std::string> ReducedPrecisionBackends();

// Returns the dtypes in which the backend computes products of matrices.
std::set<ComputeDtype> ComputeDtypesOf(const Backend& backend);

// Returns the ops that the backend has kernels for, fused ones too, by Op::type().
std::set<std::string> KernelsOf(const std::string& name);

// Returns the ops without a kernel in the backend. Tests fail for a listed op that has a kernel, so
// the lists can only shrink.
std::set<std::string> MissingOps(const std::string& name);

}  // namespace shoal
