#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/job/job.h"

namespace shoal {

// Writes into a job of the strategy sync how many gradients make an update, where it leaves that to
// the number of workers that the cluster spec lists. kInvalidArgument: it lists none, or more than
// a round may have.
absl::Status ResolveRounds(uint64_t listed_workers, Job* job);

// kInvalidArgument: a round of the job has more steps than its epochs have.
absl::Status CheckRounds(const Job& job, uint64_t steps_per_epoch);

}  // namespace shoal
