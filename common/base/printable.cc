#include "common/base/printable.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

unsigned char At(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

// Bytes of the character that `text` begins with, which may be shown as it is; 0 when it may not.
// UTF-8 as RFC 3629 has it, without U+0080 to U+009F, which are control characters too.
size_t ShownCharacter(std::string_view text) {
  const unsigned char first = At(text, 0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((At(text, i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = At(text, 1);
  const bool other_encoding = (first == 0xe0 && second < 0xa0) ||
                              (first == 0xed && second > 0x9f) ||
                              (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  const bool control = first == 0xc2 && second < 0xa0;
  return other_encoding || control ? 0 : size;
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
