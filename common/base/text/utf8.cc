#include "common/base/text/utf8.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

unsigned char At(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

}  // namespace

size_t Utf8CharacterBytes(std::string_view text) {
  const unsigned char first = At(text, 0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((At(text, i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = At(text, 1);
  const bool other_encoding = (first == 0xe0 && second < 0xa0) ||
                              (first == 0xed && second > 0x9f) ||
                              (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return other_encoding ? 0 : size;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = Utf8CharacterBytes(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string EscapeInvalidUtf8(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const size_t size = Utf8CharacterBytes(text);
    if (size > 0) {
      escaped.append(text.substr(0, size));
    } else {
      absl::StrAppend(&escaped, absl::CHexEscape(std::string(1, text[0])));
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return escaped;
}

absl::Status CheckUtf8Path(const std::string& path) {
  if (IsUtf8(path)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Printable(path, kMaxReasonBytes),
      ": this path is not UTF-8, which the files of a run need; rename the folder or file, "
      "or name another"));
}

}  // namespace shoal
