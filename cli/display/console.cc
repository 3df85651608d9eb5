#include "cli/display/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace shoal {
namespace {

constexpr char kEraseLine[] = "\r\x1b[2K";

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool LocaleIsUtf8() {
  // The first of these that is set decides, as in setlocale.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = Environment(name);
    if (value.empty()) continue;
    return value.find("UTF-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return false;
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

Console::Console(std::FILE* out, std::FILE* err, TerminalStyle style)
    : out_(out), err_(err), style_(style) {}

Console::~Console() { ClearLive(); }

void Console::Print(const std::string& text) { PrintTo(out_, text); }

void Console::PrintError(const std::string& text) { PrintTo(err_, text); }

void Console::PrintTo(std::FILE* stream, const std::string& text) {
  const std::string live = live_;
  ClearLive();
  std::fprintf(stream, "%s%s", text.c_str(), text.ends_with('\n') ? "" : "\n");
  std::fflush(stream);
  if (!live.empty()) ShowLive(live);
}

void Console::ShowLive(const std::string& text) {
  if (!style_.terminal || text == live_) return;
  std::fprintf(out_, "%s%s", kEraseLine, text.c_str());
  std::fflush(out_);
  live_ = text;
}

void Console::ClearLive() {
  if (live_.empty()) return;
  std::fprintf(out_, "%s", kEraseLine);
  std::fflush(out_);
  live_.clear();
}

}  // namespace shoal
