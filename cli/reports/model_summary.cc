#include "cli/reports/model_summary.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace shoal {
namespace {

struct Column {
  const char* title;
  size_t width;  // in characters, without the space on either side
  bool right = false;
};

// "1234567" -> "1,234,567"
std::string WithCommas(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

// "1.66 MB", as Keras does it.
std::string ReadableSize(int64_t size_bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB", "PB"};
  double size = static_cast<double>(size_bytes);
  size_t unit = 0;
  while (size >= 1024 && unit + 1 < std::size(kUnits)) {
    size /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f %s", size, kUnits[unit]);
  return text;
}

// Returns the number of characters of UTF-8 text: all bytes except continuation bytes.
size_t Length(const std::string& text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
}

// Returns the first `width` characters. If there are more, the last one is an ellipsis.
std::string Shorten(const std::string& text, size_t width) {
  if (Length(text) <= width) return text;
  size_t end = 0;
  for (size_t characters = 0; end < text.size(); ++end) {
    if ((text[end] & 0xc0) != 0x80 && ++characters == width) break;
  }
  return absl::StrCat(text.substr(0, end), "…");
}

// Breaks a cell into lines at spaces. Shortens words that are longer than a line.
std::vector<std::string> Wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    const std::string shown = Shorten(std::string(word), width);
    if (!lines.empty() && Length(lines.back()) + 1 + Length(shown) <= width) {
      absl::StrAppend(&lines.back(), " ", shown);
    } else {
      lines.push_back(shown);
    }
  }
  return lines;
}

// Returns a line of the frame: left end, `run` below each column, a joint between columns, right
// end.
std::string Rule(const std::vector<Column>& columns, const char* left, const char* run,
                 const char* meet, const char* right) {
  std::string line = left;
  for (size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line += meet;
    for (size_t n = 0; n < columns[i].width + 2; ++n) line += run;
  }
  return line + right + "\n";
}

std::string Row(const std::vector<Column>& columns, const std::vector<std::string>& cells,
                const char* edge) {
  std::vector<std::vector<std::string>> lines;
  size_t height = 0;
  for (size_t i = 0; i < columns.size(); ++i) {
    lines.push_back(Wrap(cells[i], columns[i].width));
    height = std::max(height, lines.back().size());
  }
  std::string row;
  for (size_t line = 0; line < height; ++line) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const std::string text = line < lines[i].size() ? lines[i][line] : "";
      const std::string space(columns[i].width - Length(text), ' ');
      absl::StrAppend(&row, edge, " ", columns[i].right ? space + text : text + space, " ");
    }
    absl::StrAppend(&row, edge, "\n");
  }
  return row;
}

std::string Total(const char* what, int64_t parameters) {
  return absl::StrCat(" ", what, ": ", WithCommas(parameters), " (",
                      ReadableSize(parameters * static_cast<int64_t>(sizeof(float))), ")\n");
}

}  // namespace

// The frame, the column widths and the totals match Keras 3 on a terminal.
std::string SummarizeModel(const KerasModel& model) {
  const bool functional = model.class_name == "Functional";
  const std::vector<Column> columns =
      functional
          ? std::vector<Column>{{"Layer (type)", 19},
                                {"Output Shape", 17},
                                {"Param #", 10, true},
                                {"Connected to", 17}}
          : std::vector<Column>{{"Layer (type)", 31}, {"Output Shape", 22}, {"Param #", 13, true}};
  std::vector<std::string> titles;
  for (const Column& column : columns) titles.push_back(column.title);

  std::string text = absl::StrCat("Model: \"", model.name, "\"\n");
  text += Rule(columns, "┏", "━", "┳", "┓") + Row(columns, titles, "┃");
  text += Rule(columns, "┡", "━", "╇", "┩");
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerSummary& layer = model.layers[i];
    if (i > 0) text += Rule(columns, "├", "─", "┼", "┤");
    std::vector<std::string> cells = {absl::StrCat(layer.name, " (", layer.class_name, ")"),
                                      ShapeToString(layer.output_shape),
                                      WithCommas(layer.parameters)};
    if (functional) {
      cells.push_back(layer.connected_to.empty() ? "-" : absl::StrJoin(layer.connected_to, ", "));
    }
    text += Row(columns, cells, "│");
  }
  text += Rule(columns, "└", "─", "┴", "┘");

  int64_t trainable = 0;
  int64_t fixed = 0;
  for (const Variable& variable : model.graph.variables()) {
    (variable.rule == UpdateRule::kOptimizer ? trainable : fixed) += ElementCount(variable.shape);
  }
  return text + Total("Total params", trainable + fixed) + Total("Trainable params", trainable) +
         Total("Non-trainable params", fixed);
}

}  // namespace shoal
