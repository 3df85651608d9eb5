#include "common/base/text/printable.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/text/utf8.h"

namespace shoal {
namespace {

// Returns the size of the first character of `text` if it may be shown unchanged, else 0. Rejects
// bytes that are not UTF-8, and control characters, U+0080 to U+009F included.
size_t ShownCharacter(std::string_view text) {
  const size_t size = Utf8CharacterBytes(text);
  const auto first = static_cast<unsigned char>(text[0]);
  const bool control = first < 0x20 || first == 0x7f ||
                       (size == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0);
  return control ? 0 : size;
}

std::string Shown(std::string_view text, size_t max_bytes, bool keep_newlines) {
  const size_t end = std::min(text.size(), max_bytes);
  std::string shown;
  shown.reserve(end);
  size_t i = 0;
  while (i < end) {
    const size_t size = ShownCharacter(text.substr(i));
    if (size > 0 && i + size > end) break;  // not half a character
    if (size > 0 || (keep_newlines && text[i] == '\n')) {
      shown.append(text.substr(i, std::max<size_t>(size, 1)));
    } else {
      absl::StrAppend(&shown, absl::CHexEscape(std::string(1, text[i])));
    }
    i += std::max<size_t>(size, 1);
  }
  if (i < text.size()) absl::StrAppend(&shown, "... (", text.size() - i, " bytes more)");
  return shown;
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  return Shown(text, max_bytes, /*keep_newlines=*/false);
}

std::string PrintableLines(std::string_view text, size_t max_bytes) {
  return Shown(text, max_bytes, /*keep_newlines=*/true);
}

}  // namespace shoal
