#include "common/base/term.h"

#include "absl/strings/str_format.h"

namespace shoal {

std::string TermText(uint64_t term) {
  return absl::StrFormat("%d-%08x", TermNumber(term), static_cast<uint32_t>(term));
}

}  // namespace shoal
