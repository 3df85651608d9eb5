#pragma once

#include <cstdint>
#include <vector>

#include "common/model/variable.h"

namespace shoal {

// Where the variables lie in one buffer that holds a whole model: end to end in model order, each
// beginning on a multiple of 16 floats (64 bytes). Offsets and sizes in floats. Gaps are not
// defined.
struct ModelLayout {
  struct Extent {
    int64_t offset = 0;
    int64_t size = 0;
  };
  std::vector<Extent> variables;
  int64_t size = 0;  // of the buffer

  explicit ModelLayout(const std::vector<Variable>& variables);
  ModelLayout() = default;
};

}  // namespace shoal
