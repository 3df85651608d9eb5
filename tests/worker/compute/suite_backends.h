#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/backend.h"

namespace shoal {

// What the suites that hold for every backend run on: TestedBackends(), and "fake_device", the
// reference's kernels behind the copies and the streams of a FakeDevice.
std::vector<std::string> SuiteBackends();
absl::StatusOr<std::unique_ptr<Backend>> CreateSuiteBackend(const std::string& name);

}  // namespace shoal
