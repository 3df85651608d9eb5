#pragma once

#include <string>
#include <vector>

#include "proto/cluster.pb.h"

namespace shoal {

// The table at the end of a training: a line an epoch, columns as wide as they need.
std::string FormatHistoryTable(const std::vector<proto::EpochResult>& history);

}  // namespace shoal
