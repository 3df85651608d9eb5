#include "cli/display/console.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

constexpr char kEraseLine[] = "\r\x1b[2K";
// of one print
constexpr size_t kMaxBytes = 256 << 10;
// How long Finish waits for a slow reader.
constexpr std::chrono::seconds kPatience{2};

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool LocaleIsUtf8() {
  // The first of these variables that is set decides, as in setlocale.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = Environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
}

bool SameFile(int a, int b) {
  struct stat of_a = {};
  struct stat of_b = {};
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

std::unique_ptr<OutputQueue> QueueTo(int descriptor) {
  return std::make_unique<OutputQueue>(OutputQueue::Options{
      .descriptor = descriptor, .thread_name = "console", .describe_loss = [](uint64_t lost) {
        return absl::StrCat("(", lost, " lines are missing here: the output was not read)\n");
      }});
}

}  // namespace

TerminalStyle TerminalStyle::Detect() {
  TerminalStyle style;
  style.terminal = isatty(STDOUT_FILENO) == 1 && Environment("TERM") != "dumb";
  winsize size{};
  if (style.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.width = size.ws_col;
  }
  style.color = style.terminal && Environment("NO_COLOR").empty();
  style.unicode = LocaleIsUtf8();
  return style;
}

Console::Console(int out, int err, TerminalStyle style)
    : out_(QueueTo(out)),
      own_err_(SameFile(out, err) ? nullptr : QueueTo(err)),
      err_(own_err_ != nullptr ? own_err_.get() : out_.get()),
      style_(style) {}

Console::~Console() { Finish().IgnoreError(); }

absl::Status Console::Finish() {
  ClearLive();
  Flush(kPatience);
  if (out_->write_error() == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(out_->write_error(), "cannot write to standard output");
}

void Console::Print(const std::string& text) { PrintTo(out_.get(), text); }

void Console::PrintError(const std::string& text) { PrintTo(err_, text); }

void Console::PrintTo(OutputQueue* queue, const std::string& text) {
  const std::string lines =
      absl::StrCat(PrintableLines(text, kMaxBytes), text.ends_with('\n') ? "" : "\n");
  MutexLock lock(&mutex_);
  const std::string live = live_;
  WriteLive("");
  queue->Write(lines);
  WriteLive(live);
}

void Console::ShowLive(const std::string& text) {
  MutexLock lock(&mutex_);
  if (style_.terminal) WriteLive(text);
}

void Console::ClearLive() {
  MutexLock lock(&mutex_);
  WriteLive("");
}

void Console::WriteLive(const std::string& text) {
  if (text == live_) return;
  out_->Write(absl::StrCat(kEraseLine, text));
  live_ = text;
}

TerminalStyle Console::style() const {
  MutexLock lock(&mutex_);
  return style_;
}

void Console::set_style(TerminalStyle style) {
  MutexLock lock(&mutex_);
  style_ = style;
}

void Console::Flush(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  out_->Flush(patience);
  if (own_err_ == nullptr) return;
  own_err_->Flush(std::chrono::ceil<std::chrono::milliseconds>(
      std::max(deadline - std::chrono::steady_clock::now(), {})));
}

}  // namespace shoal
