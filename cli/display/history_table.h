#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"

namespace shoal {

// Reads the coordinator's history.csv: a header line, then one line an epoch. Columns are found by
// name: `epoch` (from 1), `loss`, `val_loss`, `seconds`, `examples_per_second`; any other is a
// metric, with `val_` in front one of the test set. An empty field is a value that there is not. A
// file that does not exist is an empty history.
absl::StatusOr<std::vector<proto::EpochResult>> ReadHistory(const std::string& path);

// The table at the end of a training: a line an epoch, columns as wide as they need.
std::string FormatHistoryTable(const std::vector<proto::EpochResult>& history);

}  // namespace shoal
