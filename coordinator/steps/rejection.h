#pragma once

#include <cstdint>
#include <string>

#include "proto/worker.pb.h"

namespace shoal {

// What the coordinator says to a worker or an evaluator that cannot take part, and why; `final`:
// trying again is useless.
proto::Rejected Rejection(const std::string& reason, bool final);

// The same to a process that computes the job with fingerprint `theirs`, where the coordinator has
// the one with `ours`: it has outlived a coordinator, and ends so that it is started again.
proto::Rejected RejectionOfOtherJob(uint32_t theirs, uint32_t ours);

}  // namespace shoal
