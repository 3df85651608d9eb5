#include "worker/compute/plan/transfers.h"

#include <algorithm>

namespace shoal {
namespace {

constexpr int64_t kValueBytes = sizeof(float);

// Joins adjacent ranges.
std::vector<Transfer::Range> Joined(std::vector<Transfer::Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.offset_bytes < b.offset_bytes; });
  std::vector<Transfer::Range> joined;
  for (const Transfer::Range& range : ranges) {
    if (!joined.empty() &&
        joined.back().offset_bytes + joined.back().size_bytes == range.offset_bytes) {
      joined.back().size_bytes += range.size_bytes;
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

}  // namespace

std::vector<Transfer> PlanTransfers(const std::vector<VariableAtStep>& variables,
                                    const ModelLayout& layout, int64_t min_bytes) {
  std::vector<Transfer> transfers;
  int64_t size_bytes = min_bytes;  // of the last transfer; starts as full, so that the first
                                   // variable begins one
  for (const auto& [variable, step] : variables) {
    const ModelLayout::Extent& extent = layout.variables[variable];
    if (size_bytes >= min_bytes || extent.size * kValueBytes >= min_bytes) {
      transfers.push_back({.first_step = step});
      size_bytes = 0;
    }
    Transfer& transfer = transfers.back();
    transfer.variables.push_back(variable);
    transfer.ranges.push_back({extent.offset * kValueBytes, extent.size * kValueBytes});
    transfer.last_step = step;
    size_bytes += extent.size * kValueBytes;
  }
  for (Transfer& transfer : transfers) transfer.ranges = Joined(std::move(transfer.ranges));
  return transfers;
}

}  // namespace shoal
