#pragma once

#include <string>
#include <vector>

namespace shoal {

// Returns the candidate with the smallest edit distance to `name`, ignoring case. The distance must
// be at most a third of the longer name's length, or 1 if that is less. Returns "" if no candidate
// is that near. For messages with "did you mean".
std::string NearestName(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace shoal
