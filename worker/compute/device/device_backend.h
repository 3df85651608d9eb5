#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend.h"
#include "worker/compute/device/device.h"
#include "worker/compute/device/device_executable.h"
#include "worker/compute/program_builder.h"

namespace shoal {

// A backend whose kernels compute in the memory of a Device: its executables copy in what a run
// reads, in the order in which it is read, and copy out what it leaves while the rest is computed.
class DeviceBackend : public Backend {
 public:
  using OnWarning = std::function<void(const std::string& warning)>;
  // Parameters and gradients are copied so many bytes at a time, at least. `on_warning`: what
  // hinders nothing, for people; once.
  DeviceBackend(
      std::unique_ptr<Device> device, int64_t least_copied_bytes,
      OnWarning on_warning = [](const std::string&) {})
      : device_(std::move(device)),
        least_copied_bytes_(least_copied_bytes),
        on_warning_(std::move(on_warning)) {}
  // On any thread. A batch that was to be the next one may still be on its way to the device.
  ~DeviceBackend() override {
    device_->UseOnThisThread();
    device_->Finish();
  }

  absl::StatusOr<std::unique_ptr<Executable>> Compile(Plan plan) final;
  bool runs_in_machine_memory() const final { return false; }
  bool adds_up_parts() const final { return true; }
  absl::StatusOr<int64_t> DeviceBytes(bool trains) const final;
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> buffer) final;
  absl::Status Poison(int64_t size_bytes) final;
  // Those of a device are its own.
  void UseThreads(int) const final { device_->UseOnThisThread(); }

 protected:
  // As HostBackend's.
  virtual absl::Status AddSteps(ProgramBuilder& builder) const = 0;
  // Kernels of the device.
  virtual const DeviceMoveKernels& moves() const = 0;

 private:
  const std::unique_ptr<Device> device_;
  const int64_t least_copied_bytes_;
  const OnWarning on_warning_;
  bool warned_ = false;
  SharedDeviceMemory memory_;
};

}  // namespace shoal
