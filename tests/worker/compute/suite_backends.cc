#include "tests/worker/compute/suite_backends.h"

#include "tests/worker/compute/device/fake_device.h"
#include "tests/worker/compute/device/fake_device_backend.h"
#include "tests/worker/compute/tested_backends.h"
#include "worker/compute/backends.h"

namespace shoal {

std::vector<std::string> SuiteBackends() {
  std::vector<std::string> names = TestedBackends();
  names.push_back("fake_device");
  return names;
}

absl::StatusOr<std::unique_ptr<Backend>> CreateSuiteBackend(const std::string& name) {
  if (name != "fake_device") return CreateBackend(name);
  return std::make_unique<FakeDeviceBackend>(std::make_unique<FakeDevice>(/*seed=*/1),
                                             /*least_copied_bytes=*/1024);
}

}  // namespace shoal
