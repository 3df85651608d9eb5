#include "common/base/text/snake_case.h"

#include "absl/strings/ascii.h"

namespace shoal {

std::string SnakeCase(const std::string& name) {
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool word_begins = i > 0 && absl::ascii_isupper(name[i]) &&
                             (absl::ascii_islower(name[i - 1]) ||
                              (absl::ascii_isupper(name[i - 1]) && i + 1 < name.size() &&
                               absl::ascii_islower(name[i + 1])));
    if (word_begins) snake += '_';
    snake += absl::ascii_tolower(name[i]);
  }
  return snake;
}

}  // namespace shoal
