#pragma once

#include <string>
#include <vector>

namespace shoal {

// The backends that tests of the ModelRunner run on. Under the thread sanitizer only the reference:
// OpenMP's library is not instrumented, so that it would report races where there are none.
inline std::vector<std::string> TestedBackends() {
#ifdef __SANITIZE_THREAD__
  return {"reference"};
#else
  return {"reference", "cpu"};
#endif
}

}  // namespace shoal
