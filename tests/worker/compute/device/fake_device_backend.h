#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/worker/compute/device/fake_device.h"
#include "worker/compute/device/device_backend.h"

namespace shoal {

// Runs the reference's kernels on a FakeDevice.
class FakeDeviceBackend : public DeviceBackend {
 public:
  FakeDeviceBackend(
      std::unique_ptr<FakeDevice> device, int64_t min_copied_bytes,
      OnWarning on_warning = [](const std::string&) {});
  ~FakeDeviceBackend() override;

  std::string name() const override { return "fake_device"; }
  bool Supports(const Node& node) const override;
  bool rewrites_models() const override { return false; }

  // Returns how many kernels the program builders have requested.
  int copies() const;
  int zeros() const;

 protected:
  absl::Status AddSteps(ProgramBuilder& builder) const override;
  const DeviceMoveKernels& moves() const override;

 private:
  class CountedMoves;
  const std::unique_ptr<const CountedMoves> moves_;
};

}  // namespace shoal
