#pragma once

#include <string>
#include <vector>

#include "worker/compute/backend/backends.h"

namespace shoal {

// The backends that tests of the ModelRunner run on. Under the thread sanitizer only the reference:
// OpenMP's library is not instrumented, so that it would report races where there are none.
inline std::vector<std::string> TestedBackends() {
#ifdef __SANITIZE_THREAD__
  return {"reference"};
#else
  return BackendNames();
#endif
}

}  // namespace shoal
