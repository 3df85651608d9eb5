#include "common/base/text/shell_word.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace shoal {

std::string ShellWord(const std::string& text) {
  constexpr std::string_view kPlain = "_-+./:,@%=";
  const bool plain = std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || kPlain.find(c) != kPlain.npos;
  });
  if (plain && !text.empty()) return text;
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace shoal
