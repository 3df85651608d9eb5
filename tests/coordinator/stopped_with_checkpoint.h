#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/str_format.h"
#include "tests/common/base/fails_with.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {

// Matches the end of a run whose stop kept all steps: its message names the newest checkpoint,
// which is stored.
inline testing::Matcher<const absl::Status&> StoppedWithCheckpoint(const ScriptedCluster& cluster) {
  const std::vector<uint64_t> steps = cluster.StoredSteps();
  return FailsWith(absl::StatusCode::kCancelled,
                   {absl::StrFormat(": %s/checkpoints/step-%012d", cluster.run_dir(),
                                    steps.empty() ? UINT64_MAX : steps.front())});
}

}  // namespace shoal
