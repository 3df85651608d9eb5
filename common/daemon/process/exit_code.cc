#include "common/daemon/process/exit_code.h"

namespace shoal {

ExitCode ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kOutOfRange:
      return kExitBadData;
    case absl::StatusCode::kAborted:
      return kExitFencedOff;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kFailedPrecondition:
      return kExitBadConfiguration;
    case absl::StatusCode::kCancelled:
      return kExitDrained;
    default:
      return kExitRestart;
  }
}

}  // namespace shoal
