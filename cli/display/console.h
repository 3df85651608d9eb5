#pragma once

#include <algorithm>
#include <cstdio>
#include <string>

namespace shoal {

// What a terminal can show.
struct TerminalStyle {
  bool terminal = false;  // false: a file or a pipe
  int width = 80;         // columns
  bool color = false;
  bool unicode = false;

  // Columns that a live line may take: behind it stays room for the ^C that a terminal echoes,
  // which would make a fuller line wrap.
  int live_columns() const { return std::max(1, width - 3); }
  // As standard output is now; NO_COLOR, TERM, LC_ALL, LC_CTYPE and LANG are honoured.
  static TerminalStyle Detect();
};

// Lines for people, and below them, on a terminal, one live line that is redrawn in place.
// Not thread-safe.
class Console {
 public:
  // Both streams outlive this.
  Console(std::FILE* out, std::FILE* err, TerminalStyle style);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Prints a line (or several) that stays.
  void Print(const std::string& text);
  // The same on standard error.
  void PrintError(const std::string& text);
  // Replaces the live line, at most style().live_columns() wide; no effect when not on a terminal.
  void ShowLive(const std::string& text);
  // Takes the live line away.
  void ClearLive();

  const TerminalStyle& style() const { return style_; }
  void set_style(TerminalStyle style) { style_ = style; }

 private:
  void PrintTo(std::FILE* stream, const std::string& text);

  std::FILE* const out_;
  std::FILE* const err_;
  TerminalStyle style_;
  std::string live_;
};

}  // namespace shoal
