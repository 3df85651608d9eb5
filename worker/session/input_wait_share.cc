#include "worker/session/input_wait_share.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

constexpr Time kPeriod = std::chrono::minutes(1);
constexpr double kLarge = 0.1;

}  // namespace

std::string InputWaitShare::StepDone(Time waited, Time took) {
  waited_ += waited;
  took_ += took;
  if (took_ < kPeriod) return "";
  const double share = ToSeconds(waited_) / ToSeconds(took_);
  waited_ = took_ = {};
  const Share now = share >= kLarge ? Share::kLarge : Share::kSmall;
  if (now == reported_) return "";
  reported_ = now;
  std::string text =
      absl::StrCat("waiting for data takes ", std::lround(100 * share), "% of the time of steps");
  if (now == Share::kLarge) {
    text +=
        "; more cores for this worker, \"cache\" in the job's data, or smaller pictures on disk "
        "would make it faster";
  }
  return text;
}

}  // namespace shoal
