#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace shoal {

// Ends the process with this text, joined by absl::StrCat; libFuzzer then keeps the input.
template <typename... Parts>
[[noreturn]] void FuzzFail(const Parts&... what) {
  std::fprintf(stderr, "fuzz: %s\n", absl::StrCat(what...).c_str());
  std::abort();
}

// The same if an invariant of a fuzz target does not hold.
template <typename... Parts>
void FuzzCheck(bool holds, const Parts&... what) {
  if (!holds) FuzzFail(what...);
}

}  // namespace shoal
