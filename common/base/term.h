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

// A coordinator's number is one above the highest it knows of, so that they rise with the lives of
// coordinators, and with restores and cuts tried again. Nobody comes to a number above
// kMaxTermNumber, and nobody who knows of one is so many above it: what says so was not given by a
// coordinator.
inline constexpr uint32_t kMaxTermNumber = 1u << 31;
inline constexpr uint32_t kMostTermsAhead = 1u << 20;

// A coordinator may have come to `number`, where `highest` is the highest known; 0 = none.
inline constexpr bool PlausibleTermNumber(uint32_t number, uint32_t highest) {
  if (number > kMaxTermNumber) return false;
  return highest == 0 || number <= highest || number - highest <= kMostTermsAhead;
}

// "1-0badcafe": a term or timeline as people read it, number and coordinator id.
std::string TermText(uint64_t term);

}  // namespace shoal
