#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/backend/backend.h"
#include "worker/compute/device/device.h"
#include "worker/compute/device/device_executable.h"
#include "worker/compute/program/program_builder.h"

namespace shoal {

// A backend whose kernels compute in the memory of a Device. Its executables copy in the inputs of
// a run in the order of their first use, and copy out results while the rest is still computing.
class DeviceBackend : public Backend {
 public:
  using OnWarning = std::function<void(const std::string& warning)>;
  // Copies parameters and gradients at least this many bytes at a time. `on_warning` gets a message
  // for people about a problem that stops nothing; at most once.
  DeviceBackend(
      std::unique_ptr<Device> device, int64_t min_copied_bytes,
      OnWarning on_warning = [](const std::string&) {})
      : device_(std::move(device)),
        min_copied_bytes_(min_copied_bytes),
        on_warning_(std::move(on_warning)) {}
  // May run on any thread. A copy of the announced next batch to the device may still be running.
  ~DeviceBackend() override {
    device_->UseOnThisThread();
    device_->Finish();
  }

  bool runs_in_machine_memory() const final { return false; }
  bool sums_parts() const final { return true; }
  absl::StatusOr<int64_t> DeviceBytes(bool trains) const final;
  absl::StatusOr<std::unique_ptr<PinnedBuffer>> Pin(std::span<float> buffer) final;
  absl::Status Poison(int64_t size_bytes) final;
  // The device manages its own threads.
  void UseThreads(int) const final { device_->UseOnThisThread(); }

 protected:
  absl::StatusOr<std::unique_ptr<Executable>> CompileNodes(Plan plan) final;
  // As for HostBackend.
  virtual absl::Status AddSteps(ProgramBuilder& builder) const = 0;
  // The device's kernels.
  virtual const DeviceMoveKernels& moves() const = 0;

 private:
  const std::unique_ptr<Device> device_;
  const int64_t min_copied_bytes_;
  const OnWarning on_warning_;
  bool warned_ = false;
  SharedDeviceMemory memory_;
};

}  // namespace shoal
