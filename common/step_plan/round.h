#pragma once

#include <cstdint>

namespace shoal {

// Consecutive steps whose gradients become one update, their mean (docs/protocol.md, section 13).
struct Round {
  uint64_t first = 0;
  uint32_t count = 0;   // at least 1
  uint64_t number = 0;  // from 0

  bool operator==(const Round&) const = default;
  uint64_t end() const { return first + count; }
  bool Contains(uint64_t step) const { return step >= first && step - first < count; }
};

}  // namespace shoal
