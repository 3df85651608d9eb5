#pragma once

#include <cstdint>
#include <string>

#include "proto/worker.pb.h"

namespace shoal {

// The coordinator's answer to a worker or an evaluator that cannot take part. `final`: a retry is
// useless.
proto::Rejected Rejection(const std::string& reason, bool final);

// The answer to a process that computes the job with fingerprint `theirs`, while the coordinator
// has the job with fingerprint `ours`. The process has outlived a coordinator. It ends, so that its
// supervisor starts it again.
proto::Rejected RejectionOfOtherJob(uint32_t theirs, uint32_t ours);

}  // namespace shoal
