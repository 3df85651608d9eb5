#pragma once

#include <string>

#include "proto/cluster.pb.h"

namespace shoal {

// The status of a job for people: how far it is, what it waits for, its tasks, its last checkpoint;
// of one that is finished, and that no coordinator leads any more, where its model lies.
std::string FormatStatusReport(const proto::StatusReply& status);

// The same as one JSON object, every field of proto/cluster.proto under its name there. All numbers
// are numbers (but for those that are not finite, which JSON has none for), also those of 64 bits,
// which protobuf's JSON has as strings: none that counts something comes near the 2^53 up to which
// JavaScript and jq are exact. The job's fingerprint is the 8 hex digits that stand for it
// everywhere.
std::string StatusToJson(const proto::StatusReply& status);

}  // namespace shoal
