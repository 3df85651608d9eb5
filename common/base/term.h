#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// A term: number in the upper 32 bits, coordinator id in the lower, so that comparing the whole
// compares them in this order. Timelines are named by terms; 0 is none.
inline constexpr uint64_t MakeTerm(uint32_t number, uint32_t coordinator_id) {
  return uint64_t{number} << 32 | coordinator_id;
}
inline constexpr uint32_t TermNumber(uint64_t term) { return static_cast<uint32_t>(term >> 32); }

// "1-0badcafe": a term or timeline as people read it, number and coordinator id.
std::string TermText(uint64_t term);

}  // namespace shoal
