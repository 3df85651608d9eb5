#pragma once

#include <string>
#include <vector>

namespace shoal {

// The candidate with the smallest edit distance to `name`, ignoring case, when it is near enough to
// be a likely typing error (at most a third of the longer name, at least 1); empty otherwise. For
// messages that say "did you mean".
std::string NearestName(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace shoal
