#include "common/base/text/nearest_name.h"

#include <algorithm>
#include <cctype>
#include <utility>

namespace shoal {
namespace {

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Optimal string alignment distance (insert, delete, substitute, swap two neighbours), ignoring
// case.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before_last, last, row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = Lower(a[i - 1]), y = Lower(b[j - 1]);
      row[j] = std::min({last[j - 1] + (x == y ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && x == Lower(b[j - 2]) && Lower(a[i - 2]) == y)
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

}  // namespace

std::string NearestName(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(name, candidate);
    const size_t allowed = std::max<size_t>(1, std::max(name.size(), candidate.size()) / 3);
    if (distance <= allowed && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace shoal
