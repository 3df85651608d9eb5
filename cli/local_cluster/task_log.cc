#include "cli/local_cluster/task_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"
#include "common/files/file_system.h"

namespace shoal {

// O_NONBLOCK for the open alone, because opening a pipe would wait for a reader. OutputQueue needs
// a blocking descriptor.
absl::StatusOr<std::unique_ptr<TaskLog>> TaskLog::Open(const std::string& path) {
  const int descriptor =
      open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
           NewFileMode(path));
  if (descriptor < 0) {
    const int error = errno;
    if (error == ELOOP && RealFileSystem()->IsLink(path)) return LinkError(path);
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": cannot be opened for writing: ",
                     error == ENXIO ? "it is a pipe without a reader, or a socket; remove it"
                                    : std::strerror(error)));
  }
  fcntl(descriptor, F_SETFL, O_APPEND);
  return std::unique_ptr<TaskLog>(new TaskLog(path, descriptor));
}

TaskLog::TaskLog(std::string path, int descriptor)
    : path_(std::move(path)),
      descriptor_(descriptor),
      file_(
          {.descriptor = descriptor, .thread_name = "task log", .describe_loss = [](uint64_t lost) {
             return absl::StrCat("(", lost,
                                 " lines are missing here: the disk did not take them)\n");
           }}) {}

TaskLog::~TaskLog() {
  // Leaks the descriptor while it is still being written: otherwise another file could get its
  // number.
  if (AwaitWritten(std::chrono::milliseconds(0))) close(descriptor_);
}

bool TaskLog::AwaitWritten(std::chrono::milliseconds patience) { return file_.Flush(patience); }

std::vector<std::string> TaskLog::Append(const std::string& bytes) {
  std::vector<std::string> lines;
  for (const char c : bytes) {
    if (c != '\n') partial_ += c;
    if (c == '\n' || partial_.size() >= kMaxLineBytes) Keep(std::exchange(partial_, ""), &lines);
  }
  return lines;
}

std::vector<std::string> TaskLog::Flush() {
  std::vector<std::string> lines;
  if (!partial_.empty()) Keep(std::exchange(partial_, ""), &lines);
  return lines;
}

void TaskLog::Keep(const std::string& line, std::vector<std::string>* lines) {
  file_.Write(line + "\n");
  lines->push_back(Printable(line, kMaxShownBytes));
  last_lines_.push_back(lines->back());
  if (last_lines_.size() > kLastLines) last_lines_.pop_front();
}

bool IsWarningOrWorse(const std::string& line) {
  if (line.starts_with('{')) {
    return line.find("\"level\":\"warning\"") != std::string::npos ||
           line.find("\"level\":\"error\"") != std::string::npos;
  }
  // "2026-11-21T13:00:00.123Z W worker-0 ...": the level is the second word.
  const size_t space = line.find(' ');
  if (space == std::string::npos || space == 0 || line[space - 1] != 'Z') return false;
  const std::string level = line.substr(space + 1, 2);
  return level == "W " || level == "E ";
}

bool IsLastError(const std::string& line) {
  return IsWarningOrWorse(line) && (line.find(" exit_code=") != std::string::npos ||
                                    line.find("\"exit_code\":") != std::string::npos);
}

}  // namespace shoal
