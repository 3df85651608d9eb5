#pragma once

#include <string>

#include "proto/cluster.pb.h"

namespace shoal {

// The status of a job for people: progress, the reason for a wait, tasks, last checkpoint. For a
// finished job without a coordinator, the path of its model.
std::string FormatStatusReport(const proto::StatusReply& status);

// The same as one JSON object, with every field of proto/cluster.proto under its name there.
// Numbers are JSON numbers, except non-finite ones, which JSON lacks. This includes 64-bit
// integers, which protobuf's JSON writes as strings: JavaScript and jq are exact up to 2^53, and no
// count comes near that. The job's fingerprint is the usual 8 hex digits.
std::string StatusToJson(const proto::StatusReply& status);

}  // namespace shoal
