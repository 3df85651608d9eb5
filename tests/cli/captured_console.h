#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cli/display/console.h"

namespace shoal {

// A console whose output is a string.
class CapturedConsole {
 public:
  explicit CapturedConsole(TerminalStyle style)
      : console_(captured_.stream, captured_.stream, style) {}
  Console* get() { return &console_; }
  // What was printed since the last call.
  std::string Take() {
    std::fflush(captured_.stream);
    const std::string all(captured_.text, captured_.size);
    const std::string now = all.substr(taken_);
    taken_ = all.size();
    return now;
  }

 private:
  struct Captured {
    char* text = nullptr;
    size_t size = 0;
    std::FILE* stream = open_memstream(&text, &size);
    ~Captured() {
      std::fclose(stream);
      std::free(text);
    }
  };
  Captured captured_;
  size_t taken_ = 0;
  Console console_;  // may print at its end
};

}  // namespace shoal
