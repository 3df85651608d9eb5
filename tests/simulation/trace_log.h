#pragma once

#include "tests/simulation/world.h"

namespace shoal {

// While it lives, the log of the code under test goes into a world's trace, or nowhere if there is
// none. At most one instance at a time.
class TraceLog {
 public:
  explicit TraceLog(World* world);
  ~TraceLog();
  TraceLog(const TraceLog&) = delete;
  TraceLog& operator=(const TraceLog&) = delete;
};

}  // namespace shoal
