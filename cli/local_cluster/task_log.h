#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/output_queue.h"

namespace shoal {

// What one child says: cut into lines, kept in a file as they came; given out, and the last ones
// remembered, safe to show (common/base/text/printable.h). Writing the file holds nobody up: what a
// slow disk or a full one does not take is lost, and a line says so (common/base/output_queue.h).
// Not thread-safe.
class TaskLog {
 public:
  static constexpr size_t kLastLines = 20;
  static constexpr size_t kMaxLineBytes = 64 << 10;   // a longer line is broken
  static constexpr size_t kMaxShownBytes = 16 << 10;  // of a line

  // Appends to the file at `path`: a run that goes on keeps what was logged before.
  static absl::StatusOr<std::unique_ptr<TaskLog>> Open(const std::string& path);
  // What is not in the file by now stays out of it.
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;

  // Takes output as it comes; returns the lines that it completes.
  std::vector<std::string> Append(const std::string& bytes);
  // The end of the output; returns the last line, if it lacked its newline.
  std::vector<std::string> Flush();
  // Waits until all of it is in the file, for `patience` at most; false when it is not.
  bool AwaitWritten(std::chrono::milliseconds patience);

  // Another life of the task begins: what the last one said stays in the file only.
  void ForgetLastLines() { last_lines_.clear(); }

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

// True for a line of level warning or error, in the text or the JSON format of the daemons' logs
// (common/log/logging.h): one that people should see at once.
bool IsWarningOrWorse(const std::string& line);

// True for the line of such a log that says why a daemon ends: its error, with its exit code.
bool IsLastError(const std::string& line);

}  // namespace shoal
