#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend/backend.h"

namespace shoal {

// What the suites that hold for every backend run on: TestedBackends(); "fake_device", the
// reference's kernels behind the copies and the streams of a FakeDevice; and "cuda_on_cpu"
// (CudaOnCpuBackend). In the cuda preset "cuda", too, on the first GPU.
std::vector<std::string> SuiteBackends();
// Why the backend cannot be tested on this machine; OK where it can.
absl::Status CheckDevice(const std::string& name);
absl::StatusOr<std::unique_ptr<Backend>> CreateSuiteBackend(const std::string& name);

// Those of them that compute in bfloat16 and float16 where a model asks for it.
std::vector<std::string> ReducedPrecisionBackends();

// The ops that the backend has no kernels for. Lists that are to shrink: one of these that it has a
// kernel for fails.
std::set<std::string> MissingOps(const std::string& name);

}  // namespace shoal
