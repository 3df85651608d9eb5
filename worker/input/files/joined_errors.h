#pragma once

#include "absl/status/status.h"

namespace shoal {

// Joins both errors in one status, one on each line, so that the user gets all at once. Returns OK
// if both are OK. The code is that of the first error other than kNotFound. A missing file may be
// on another machine, but an invalid one is invalid everywhere.
absl::Status JoinErrors(const absl::Status& first, const absl::Status& second);

}  // namespace shoal
