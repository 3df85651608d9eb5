#pragma once

#include "absl/status/status.h"

namespace shoal {

// Both errors in one status, a line each, so that people hear of all at once; OK when both are. The
// code is that of the first which is not kNotFound: a file that is missing may be on another
// machine, one that is wrong here is wrong.
absl::Status JoinErrors(const absl::Status& first, const absl::Status& second);

}  // namespace shoal
