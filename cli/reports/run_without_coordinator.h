#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"

namespace shoal {

// --- Facts from the files of a run without a running coordinator ---

// Returns the last status of a run whose training is over and has left its model, as far as the
// files contain it: phase "finished", no tasks, an uptime of 0. Returns nullopt for any other run,
// and for one that must train longer than its newest checkpoint. kDataLoss: there is a model, but
// the files that tell whether the training is over cannot be read; names them.
absl::StatusOr<std::optional<proto::StatusReply>> ReadFinishedRun(const std::string& run_dir);

// The last status of a run that failed and has had no coordinator since: phase "failed", with the
// cause and the exit code. Returns nullopt for a run that is finished, was stopped in order, or
// whose processes were killed, and for unreadable files.
std::optional<proto::StatusReply> ReadFailedRun(const std::string& run_dir);

// Returns the command that continues the run, or a text about how to start its coordinator. The
// command has --tls if the run directory has certificates.
std::string CommandToResume(const std::string& run_dir);

// Returns, for people, sentences about a run without a leader: how far the run came, and the
// command that continues it or shows its remains.
std::string DescribeRunWithoutCoordinator(const std::string& run_dir);

}  // namespace shoal
