#pragma once

#include <string>

#include "proto/cluster.pb.h"

namespace shoal {

// The status of a job for people: how far it is, what it waits for, its tasks, its last checkpoint.
std::string FormatStatusReport(const proto::StatusReply& status);

// The same as one JSON object, every field of proto/cluster.proto under its name there; 64-bit
// numbers are strings, as in all of protobuf's JSON, and the job's fingerprint is the 8 hex digits
// that stand for it everywhere.
std::string StatusToJson(const proto::StatusReply& status);

}  // namespace shoal
