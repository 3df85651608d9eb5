#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal {

// The result of inspecting data without a model: `shoal dataset inspect`.
struct DataReport {
  std::vector<std::string> lines;  // for the user: kinds and amounts of the data

  // Unreadable items, each with name, place and reason. Limited to the first ones.
  std::vector<std::string> damaged;
  uint64_t damaged_count = 0;
  uint64_t skippable_count = 0;  // of these, items that a job with "damaged": "skip" skips

  void AddDamage(const absl::Status& status);
};

}  // namespace shoal
