#include "cli/trained_model/dataset_run.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "cli/display/number_text.h"
#include "cli/trained_model/stop_request.h"
#include "common/base/status_macros.h"
#include "common/memory/memory_limit.h"

namespace shoal {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLiveInterval{100};
// An earlier rate would be too inaccurate to show.
constexpr double kSettledSeconds = 0.5;

}  // namespace

absl::Status ForEachBatch(DatasetPass* pass, const std::string& what, Console* console,
                          const std::function<absl::Status(uint64_t batch)>& each) {
  const StopRequest stop;
  pass->Prefetch(0, pass->batches());
  const Clock::time_point began = Clock::now();
  Clock::time_point shown = began - kLiveInterval;
  for (uint64_t batch = 0; batch < pass->batches(); ++batch) {
    const uint64_t done = pass->Range(batch).first;
    if (stop.requested()) {
      return absl::CancelledError(
          absl::StrCat("stopped: ", what, " reached example ", done, " of ", pass->examples()));
    }
    if (const Clock::time_point now = Clock::now(); now - shown >= kLiveInterval) {
      shown = now;
      const double seconds = std::chrono::duration<double>(now - began).count();
      console->ShowLive(FormatPassLine(what, done, pass->examples(), seconds));
    }
    SHOAL_RETURN_IF_ERROR(CatchOutOfMemory("a batch", [&] { return each(batch); }));
  }
  console->ClearLive();
  return absl::OkStatus();
}

std::string FormatPassLine(const std::string& what, uint64_t done, uint64_t examples,
                           double seconds) {
  const auto all = static_cast<double>(examples);
  std::string line = absl::StrCat(what, ": ", FormatCount(static_cast<double>(done)), " of ",
                                  FormatCount(all), " examples");
  if (done == 0 || seconds < kSettledSeconds) return line;
  const double rate = static_cast<double>(done) / seconds;
  return absl::StrCat(line, "  ", FormatCount(rate), " examples/s  ",
                      FormatDuration((all - static_cast<double>(done)) / rate), " left");
}

}  // namespace shoal
