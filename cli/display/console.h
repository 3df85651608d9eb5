#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/base/output_queue.h"

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

// Lines for people, and below them, on a terminal, one live line that is redrawn in place. Printing
// never waits for who reads: what finds no room is lost, and a line says so
// (common/base/output_queue.h). What would steer a terminal is shown, not obeyed. Thread-safe.
class Console {
 public:
  // Of descriptors, which outlive this. Where both are the same file, their lines keep their order.
  Console(int out, int err, TerminalStyle style);
  // As Finish().
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

  // Takes the live line away, and waits a moment for what is not written yet. An error where
  // standard output has refused something, as a full disk does: who asked for it has not got it.
  absl::Status Finish();
  // Waits until all is written, for `patience` at most.
  void Flush(std::chrono::milliseconds patience);

  TerminalStyle style() const;
  void set_style(TerminalStyle style);

 private:
  void PrintTo(OutputQueue* queue, const std::string& text);
  void WriteLive(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<OutputQueue> out_;
  const std::unique_ptr<OutputQueue> own_err_;  // null where standard error is the same file
  OutputQueue* const err_;
  mutable Mutex mutex_;
  TerminalStyle style_ ABSL_GUARDED_BY(mutex_);
  std::string live_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
