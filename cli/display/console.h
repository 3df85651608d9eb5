#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/base/output_queue.h"

namespace shoal {

// The capabilities of a terminal.
struct TerminalStyle {
  bool terminal = false;  // false: a file or a pipe
  int width = 80;         // columns
  bool color = false;
  bool unicode = false;

  // The max width of a live line. It leaves room for the ^C that a terminal echoes, which would
  // wrap a fuller line.
  int live_columns() const { return std::max(1, width - 3); }
  // Detects the style of standard output; honours NO_COLOR, TERM, LC_ALL, LC_CTYPE and LANG.
  static TerminalStyle Detect();
};

// Prints lines for people and, on a terminal, one live line below them that is redrawn in place.
// Printing never waits for a slow reader: output that does not fit is dropped, and a line reports
// it (common/base/output_queue.h). Control characters are shown, not obeyed. Thread-safe.
class Console {
 public:
  // Writes to these descriptors, which must outlive the console. If both are the same file, lines
  // keep their order.
  Console(int out, int err, TerminalStyle style);
  // Does the same as Finish().
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Prints one or more permanent lines.
  void Print(const std::string& text);
  // The same on standard error.
  void PrintError(const std::string& text);
  // Replaces the live line, at most style().live_columns() wide; no effect when not on a terminal.
  void ShowLive(const std::string& text);
  // Removes the live line.
  void ClearLive();

  // Removes the live line and waits a moment for unwritten output. Returns an error if standard
  // output has rejected output, for example on a full disk: the caller then knows that the user did
  // not get it.
  absl::Status Finish();
  // Waits until all output is written, at most for `patience`.
  void Flush(std::chrono::milliseconds patience);

  TerminalStyle style() const;
  // Changes the style, for example after the terminal's size has changed.
  void set_style(TerminalStyle style);

 private:
  void PrintTo(OutputQueue* queue, const std::string& text);
  void WriteLive(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<OutputQueue> out_;
  const std::unique_ptr<OutputQueue> own_err_;  // null if standard error is the same file
  OutputQueue* const err_;
  mutable Mutex mutex_;
  TerminalStyle style_ ABSL_GUARDED_BY(mutex_);
  std::string live_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
