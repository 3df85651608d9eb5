#pragma once

#include <string>
#include <vector>

#include "worker/compute/registry/backends.h"

namespace shoal {

// Returns the backends for tests of the ModelRunner. Under the thread sanitizer that is only the
// reference: OpenMP's library is not instrumented, so the sanitizer would report false races.
inline std::vector<std::string> TestedBackends() {
#ifdef __SANITIZE_THREAD__
  return {"reference"};
#else
  return BackendNames();
#endif
}

}  // namespace shoal
