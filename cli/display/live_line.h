#pragma once

#include <string>

#include "cli/display/console.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The live line of a training, for example
//   epoch 2/5 ━━━━━━━────── step 1204/4690  9120 examples/s  loss 0.312  accuracy 0.886  1:12 left
// or, while something is missing, what is waited for. Never wider than style.live_columns(): the
// bar shrinks first, then the parts that matter least are left out. Colours add no columns. The
// texts of a status are safe to show where it was read (ParseReply in cli/cluster_call.h).
std::string FormatLiveLine(const proto::StatusReply& status, const TerminalStyle& style);

// The same facts for a log: no bar, no limit of width.
std::string FormatProgressLine(const proto::StatusReply& status);

// The same without what is going on instead; empty where nothing is known yet.
std::string FormatProgress(const proto::StatusReply& status);

// "the last checkpoint failed: disk full; the job goes on with DIRECTORY and tries again", of one
// whose last_error is set.
std::string FormatCheckpointError(const proto::CheckpointStatus& checkpoint);

// "epoch 2/5: loss 0.312, accuracy 0.886, test loss 0.330, test accuracy 0.881, 12.4 s, 4830
// examples/s".
std::string FormatEpochLine(const proto::EpochResult& epoch, uint64_t epochs);

}  // namespace shoal
