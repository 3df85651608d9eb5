#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal {

// Max bytes that are kept of a peer's reason, and of a peer's name. A peer's message may be longer
// than any readable text.
inline constexpr size_t kMaxReasonBytes = 4096;
inline constexpr size_t kMaxNameBytes = 255;

// Returns `text` in a form that is safe to show and bounded in length. A peer's text may contain
// escape sequences that move a terminal's cursor, newlines that forge lines, and any number of
// bytes. Control characters and bytes that are not UTF-8 become \n, \t, \r or \xNN. The part above
// `max_bytes` becomes "... (N bytes more)".
std::string Printable(std::string_view text, size_t max_bytes);

// The same for each line of `text`, keeping its newlines. For Shoal's own text that quotes a peer.
std::string PrintableLines(std::string_view text, size_t max_bytes);

}  // namespace shoal
