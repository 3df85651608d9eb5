#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal {

// What somebody finds who looks at data without a model: `shoal dataset inspect`.
struct DataReport {
  std::vector<std::string> lines;  // for people: what is there, and how much of it

  // What cannot be read, each with its name, place and reason; of very many the first ones.
  std::vector<std::string> damaged;
  uint64_t damaged_count = 0;
  uint64_t skippable_count = 0;  // of these, what a job leaves out with "damaged": "skip"

  void AddDamage(const absl::Status& status);
};

}  // namespace shoal
