#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/common/json/document_text.h"

namespace shoal {

// Returns the rows of the first table after the words `after` in docs/job-file.md.
inline std::vector<std::string> DocumentedRows(const std::string& after) {
  std::istringstream document(DocumentText("job-file.md"));
  std::vector<std::string> rows;
  bool there = false;
  for (std::string line; std::getline(document, line);) {
    there = there || line.find(after) != std::string::npos;
    if (there && line.starts_with("|")) rows.push_back(line);
    if (!rows.empty() && line.empty()) break;
  }
  rows.erase(rows.begin(), rows.begin() + std::min<size_t>(2, rows.size()));  // heading and rule
  return rows;
}

}  // namespace shoal
