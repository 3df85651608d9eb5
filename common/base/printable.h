#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal {

// Most bytes that are kept of what a peer says: of why something is so, and of how something is
// called. A message may be longer than anything that is for people.
inline constexpr size_t kMostReasonBytes = 4096;
inline constexpr size_t kMostNameBytes = 255;

// What `text` says, safe to show and of bounded length: text of a peer may hold escape sequences
// that move a terminal's cursor, newlines that forge lines, and any number of bytes. Control
// characters and bytes that are not UTF-8 become \n, \t, \r or \xNN; what is above `max_bytes`
// becomes "... (N bytes more)".
std::string Printable(std::string_view text, size_t max_bytes);

// Likewise each line of `text`, whose newlines stay: for text of ours that quotes a peer's.
std::string PrintableLines(std::string_view text, size_t max_bytes);

}  // namespace shoal
