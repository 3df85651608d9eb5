#pragma once

#include <cstdint>
#include <vector>

#include "common/model/variable.h"

namespace shoal {

// The places of the variables in one buffer that holds a whole model. They follow each other in
// model order; each begins on a multiple of 16 floats (64 bytes). Offsets and sizes are in floats.
// The content of the gaps is undefined.
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
