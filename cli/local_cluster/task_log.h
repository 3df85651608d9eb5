#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/output_queue.h"

namespace shoal {

// The output of one child. Cuts it into lines, writes them to a file unchanged, and returns them
// and remembers the last ones in printable form (common/base/text/printable.h). A slow or full disk
// never blocks the writer: the file misses the lost lines, and a line in it reports this
// (common/base/output_queue.h). Not thread-safe.
class TaskLog {
 public:
  static constexpr size_t kLastLines = 20;
  static constexpr size_t kMaxLineBytes = 64 << 10;   // longer lines are split
  static constexpr size_t kMaxShownBytes = 16 << 10;  // per line

  // Appends to the file at `path`: a resumed run keeps its earlier log. kFailedPrecondition: the
  // file cannot be written, is a symbolic link, or is a pipe without a reader.
  static absl::StatusOr<std::unique_ptr<TaskLog>> Open(const std::string& path);
  // Drops output that is not yet in the file.
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  // Adds output; returns the lines that it completes.
  std::vector<std::string> Append(const std::string& bytes);
  // Ends the output; returns the last line if it lacks a newline.
  std::vector<std::string> Flush();
  // Waits until all output is in the file, at most for `patience`. Returns false on a timeout.
  bool AwaitWritten(std::chrono::milliseconds patience);

  // Call before a restart of the task: the lines of its last process remain only in the file.
  void ClearLastLines() { last_lines_.clear(); }

  const std::string& path() const { return path_; }
  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  TaskLog(std::string path, int descriptor);
  void Keep(const std::string& line, std::vector<std::string>* lines);

  const std::string path_;
  const int descriptor_;
  OutputQueue file_;
  std::string partial_;
  std::deque<std::string> last_lines_;
};

// Returns true for a line of level warning or error, in the text or JSON format of the daemons'
// logs (common/log/logging.h). The user should see such a line at once.
bool IsWarningOrWorse(const std::string& line);

// Returns true for the log line with the error and the exit code with which a daemon ends.
bool IsLastError(const std::string& line);

}  // namespace shoal
