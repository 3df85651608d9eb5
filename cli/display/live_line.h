#pragma once

#include <string>

#include "cli/display/console.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The live line of a training, for example
//   epoch 2/5 ━━━━━━━────── step 1204/4690  9120 examples/s  loss 0.312  accuracy 0.886  1:12 left
// While something is missing, it names what the training waits for. Never wider than
// style.live_columns(): the bar shrinks first, then the least important parts are dropped. Colours
// add no columns. ParseReply in cli/coordinator_calls/cluster_call.h makes the texts of a status
// safe to print.
std::string FormatLiveLine(const proto::StatusReply& status, const TerminalStyle& style);

// The same facts for a log: no bar, no max width.
std::string FormatProgressLine(const proto::StatusReply& status);

// The same without the reason for a wait; empty if nothing is known yet.
std::string FormatProgress(const proto::StatusReply& status);

// Formats a checkpoint error: "the last checkpoint failed: disk full; the job continues with
// DIRECTORY and tries again". Requires last_error to be set.
std::string FormatCheckpointError(const proto::CheckpointStatus& checkpoint);

// Formats the result of an epoch: "epoch 2/5: loss 0.312, accuracy 0.886, test loss 0.330, test
// accuracy 0.881, 12.4 s, 4830 examples/s".
std::string FormatEpochLine(const proto::EpochResult& epoch, uint64_t epochs);

}  // namespace shoal
