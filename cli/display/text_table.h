#pragma once

#include <string>
#include <vector>

namespace shoal {

// A table for people: columns as wide as their widest cell, two spaces apart. Numbers are set flush
// right, a column whose header is given with a leading '<' flush left.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header);
  // As many cells as the header has.
  void AddRow(std::vector<std::string> cells);
  // A line each, ending in a newline.
  std::string ToString() const;

 private:
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;  // the header first
};

}  // namespace shoal
