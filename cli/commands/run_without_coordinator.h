#pragma once

#include <optional>
#include <string>

#include "proto/cluster.pb.h"

namespace shoal {

// --- What the files of a run tell when no coordinator is there to ask ---

// The last status of a run whose training is over and has left its model, as far as the files have
// it: phase "finished", no tasks, an uptime of 0. Nothing of any other run, of one that is to train
// longer than its newest checkpoint says, and of one whose files cannot be read.
std::optional<proto::StatusReply> ReadFinishedRun(const std::string& run_dir);

// The same of a run that failed and that nobody has led since: phase "failed", with the cause and
// the exit code. Nothing of one that is done, was stopped in order, or whose processes were killed.
std::optional<proto::StatusReply> ReadFailedRun(const std::string& run_dir);

// The command to go on with the run, or how to start its coordinator.
std::string CommandToGoOn(const std::string& run_dir);

// For people, the end of a sentence that nobody leads the run: how far it has come, and the command
// to go on, or to see what there is.
std::string DescribeRunWithoutCoordinator(const std::string& run_dir);

}  // namespace shoal
