#pragma once

#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"

// SHOAL_CHECK(condition, what...) checks an invariant of Shoal's own code, which no input from a
// file or a peer can break. If it fails, the process reports `what`, joined by absl::StrCat, and
// aborts. Its supervisor may restart it. Active in every build.
#define SHOAL_CHECK(condition, ...)                                                      \
  do {                                                                                   \
    if (ABSL_PREDICT_FALSE(!(condition)))                                                \
      ::shoal::CheckFailed(#condition, __FILE__, __LINE__, ::absl::StrCat(__VA_ARGS__)); \
  } while (false)

namespace shoal {

// Used by SHOAL_CHECK.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line,
                              const std::string& what);

// Receives the report of a failed check before the process aborts. Without a reporter, it goes to
// standard error.
using CheckReporter = void (*)(const std::string& text);
void SetCheckReporter(CheckReporter reporter);

}  // namespace shoal
