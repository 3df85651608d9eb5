#include "common/base/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace shoal {
namespace {

std::atomic<CheckReporter> check_reporter = nullptr;

// "rpc/message.cc". The directories before it depend on the build.
std::string_view ShortName(std::string_view file) {
  const size_t name = file.rfind('/');
  if (name == std::string_view::npos || name == 0) return file;
  const size_t folder = file.rfind('/', name - 1);
  return folder == std::string_view::npos ? file : file.substr(folder + 1);
}

}  // namespace

void CheckFailed(const char* condition, const char* file, int line, const std::string& what) {
  const std::string text =
      absl::StrCat("this is a fault in Shoal: ", std::string(ShortName(file)), ":", line, ": ",
                   condition, " does not hold", what.empty() ? "" : ": ", what);
  if (const CheckReporter report = check_reporter; report != nullptr) {
    report(text);
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::abort();
}

void SetCheckReporter(CheckReporter reporter) { check_reporter = reporter; }

}  // namespace shoal
