#pragma once

#include <string>
#include <vector>

namespace shoal {

// A table for people: columns as wide as their widest cell, two spaces apart. Numbers are
// right-aligned. A header that begins with '<' makes its column left-aligned.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header);
  // Adds a row with as many cells as the header.
  void AddRow(std::vector<std::string> cells);
  // Returns the rows as lines, each with a newline.
  std::string ToString() const;

 private:
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;  // header first
};

}  // namespace shoal
