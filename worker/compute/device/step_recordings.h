#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/device/device.h"

namespace shoal {

// Recordings of an executable's steps. All runs of one kind give kCompute the same work. The second
// run records it, and later runs replay it until memory moves. Not thread-safe.
class StepRecordings {
 public:
  // A kind of runs, which has a recording of its own.
  struct Kind {
    int slot;  // of the inputs: 0 or 1
    bool same_parameters;
    bool sums_parts;
  };
  // The memory that the steps of a run touch.
  struct Addresses {
    const void* inputs = nullptr;
    const void* part_sums = nullptr;
    std::vector<void*> tensors;
    bool operator==(const Addresses&) const = default;
  };

  // The device must outlive this. `on_warning` gets a message for people if recording fails.
  StepRecordings(Device* device, std::function<void(const std::string& warning)> on_warning)
      : device_(*device), on_warning_(std::move(on_warning)) {}

  // Gives the steps of a run to the device: replays them, or calls `submit`, which submits them one
  // by one. Without `may_replay` it only submits them.
  absl::Status Run(const Kind& kind, const Addresses& addresses, bool may_replay,
                   const std::function<absl::Status()>& submit);

 private:
  struct Recorded {
    Addresses addresses;                           // of the first run, and so of the recording
    std::unique_ptr<Device::Recording> recording;  // null: not recorded yet
  };

  absl::StatusOr<std::unique_ptr<Device::Recording>> Record(
      const std::function<absl::Status()>& submit);

  Device& device_;
  const std::function<void(const std::string& warning)> on_warning_;
  // Indexed by the members of Kind.
  std::array<std::array<std::array<Recorded, 2>, 2>, 2> recorded_;
  bool records_ = true;  // false once recording failed: then steps are submitted one by one
};

}  // namespace shoal
