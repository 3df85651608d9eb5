#include "worker/compute/device/step_recordings.h"

#include <utility>

#include "common/base/status_macros.h"

namespace shoal {

absl::Status StepRecordings::Run(const Kind& kind, const Addresses& addresses, bool may_replay,
                                 const std::function<absl::Status()>& submit) {
  Recorded& recorded = recorded_[kind.slot][kind.same_parameters][kind.sums_parts];
  const bool ran_there = recorded.addresses == addresses;
  if (!ran_there) recorded = {.addresses = addresses};
  if (!records_ || !ran_there || !may_replay) return submit();
  if (recorded.recording == nullptr) {
    auto recording = Record(submit);
    if (!recording.ok()) {
      // If the device is lost, the steps themselves will report it again.
      records_ = false;
      if (!absl::IsUnimplemented(recording.status())) {
        on_warning_("cannot record a step, so the device gets it kernel by kernel: " +
                    std::string(recording.status().message()));
      }
      return submit();
    }
    recorded.recording = *std::move(recording);
  }
  return device_.Play(*recorded.recording);
}

absl::StatusOr<std::unique_ptr<Device::Recording>> StepRecordings::Record(
    const std::function<absl::Status()>& submit) {
  SHOAL_RETURN_IF_ERROR(device_.BeginRecording());
  const absl::Status given = submit();
  auto recording = device_.EndRecording();
  SHOAL_RETURN_IF_ERROR(given);
  return recording;
}

}  // namespace shoal
