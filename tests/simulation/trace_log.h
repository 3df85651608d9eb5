#pragma once

#include "tests/simulation/world.h"

namespace shoal {

// While it lives, what the code under test logs goes into the trace of a world, or nowhere when
// that has none. One at a time.
class TraceLog {
 public:
  explicit TraceLog(World* world);
  ~TraceLog();
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;
};

}  // namespace shoal
