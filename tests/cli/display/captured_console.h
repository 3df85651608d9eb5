#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "cli/display/console.h"

namespace shoal {

// A console whose output is a string.
class CapturedConsole {
 public:
  explicit CapturedConsole(TerminalStyle style)
      : file_(memfd_create("console", MFD_CLOEXEC)), console_(file_, file_, style) {}
  ~CapturedConsole() { close(file_); }
  Console* get() { return &console_; }
  // Returns the output since the last call.
  std::string Take() {
    console_.Flush(std::chrono::minutes(5));
    std::string text;
    char buffer[4096];
    for (ssize_t size; (size = pread(file_, buffer, sizeof(buffer), taken_)) > 0; taken_ += size)
      text.append(buffer, size);
    return text;
  }

 private:
  const int file_;
  off_t taken_ = 0;
  Console console_;  // its destructor may still print
};

}  // namespace shoal
