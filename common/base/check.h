#pragma once

#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"

// SHOAL_CHECK(condition, what...): the condition is an invariant of our own, which nothing that
// comes from a file or a peer can break. Where it does not hold, the process says so, with `what`
// put together as by absl::StrCat, and aborts; its supervisor may start it again. In every build.
#define SHOAL_CHECK(condition, ...)                                                      \
  do {                                                                                   \
    if (ABSL_PREDICT_FALSE(!(condition)))                                                \
      ::shoal::CheckFailed(#condition, __FILE__, __LINE__, ::absl::StrCat(__VA_ARGS__)); \
  } while (false)

namespace shoal {

// For SHOAL_CHECK.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line,
                              const std::string& what);

// What a broken invariant is told to before the process aborts; standard error without one.
using CheckReporter = void (*)(const std::string& text);
void SetCheckReporter(CheckReporter reporter);

}  // namespace shoal
