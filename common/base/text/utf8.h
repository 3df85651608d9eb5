#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace shoal {

// Bytes of the character that `text`, which is not empty, begins with; 0 where that is not UTF-8 as
// RFC 3629 has it.
size_t Utf8CharacterBytes(std::string_view text);

// Whether all of `text` is UTF-8: JSON and the strings of our messages hold nothing else.
bool IsUtf8(std::string_view text);

// Returns `text` with each byte that is not UTF-8 as \xNN, for JSON that programs read. Two texts
// that differ in such bytes stay different, which a replacement character does not ensure.
std::string EscapeInvalidUtf8(std::string_view text);

// kInvalidArgument where a path is not UTF-8; the message shows the path and says what to do.
absl::Status CheckUtf8Path(const std::string& path);

}  // namespace shoal
