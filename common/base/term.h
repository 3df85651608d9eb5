#pragma once

#include <cstdint>
#include <string>

namespace shoal {

// A term has the number in the upper 32 bits and the coordinator id in the lower. Terms therefore
// compare by number first. A term names a timeline; 0 means none.
inline constexpr uint64_t MakeTerm(uint32_t number, uint32_t coordinator_id) {
  return uint64_t{number} << 32 | coordinator_id;
}
inline constexpr uint32_t TermNumber(uint64_t term) { return static_cast<uint32_t>(term >> 32); }

// A coordinator uses one more than the highest number that it knows. Numbers thus grow with
// restarts of coordinators, restores and retried cuts. A number above kMaxTermNumber, or more than
// kMaxTermsAhead above a known one, does not come from a coordinator.
inline constexpr uint32_t kMaxTermNumber = 1u << 31;
inline constexpr uint32_t kMaxTermsAhead = 1u << 20;

// Whether a coordinator may have reached `number`. `highest` is the highest known number; 0 = none.
inline constexpr bool PlausibleTermNumber(uint32_t number, uint32_t highest) {
  if (number > kMaxTermNumber) return false;
  return highest == 0 || number <= highest || number - highest <= kMaxTermsAhead;
}

// A term or timeline for messages, number and coordinator id: "1-0badcafe".
std::string TermText(uint64_t term);

}  // namespace shoal
