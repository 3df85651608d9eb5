#pragma once

#include <string>
#include <vector>

#include "proto/cluster.pb.h"

namespace shoal {

// The table at the end of a training: one line per epoch, columns as wide as necessary.
std::string FormatHistoryTable(const std::vector<proto::EpochResult>& history);

}  // namespace shoal
