#include "cli/display/text_table.h"

#include <algorithm>
#include <utility>

namespace shoal {

TextTable::TextTable(std::vector<std::string> header) {
  for (std::string& name : header) {
    left_.push_back(name.starts_with('<'));
    if (left_.back()) name.erase(0, 1);
  }
  rows_.push_back(std::move(header));
}

void TextTable::AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string TextTable::ToString() const {
  std::vector<size_t> widths(left_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      line += (i == 0 ? "" : "  ") + (left_[i] ? row[i] + padding : padding + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace shoal
