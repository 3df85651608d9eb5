#include "coordinator/cuts/cut_plan.h"

#include <algorithm>
#include <limits>

namespace shoal {
namespace {

// A cut begins this many steps early. Its fence takes a round trip, and leases go on meanwhile.
// This keeps workers from waiting for the cut.
constexpr uint64_t kMarginSteps = 8;
// Pause before the second retry of a cut that came too late. It doubles with each further retry.
constexpr Time kFirstPause = std::chrono::milliseconds(50);
// Caps the estimate of the time until a cut is accepted. A slow disk may take longer to lay out the
// files, but an outage does not predict the next cut.
constexpr Time kLongestAccepting = std::chrono::seconds(5);

}  // namespace

CutPlan::CutPlan(const Options& options)
    : options_(options), last_(options.last), no_cut_before_(options.now) {
  const auto is_over = [this](uint64_t end) {
    return options_.awaits_results ? end < options_.base : end <= options_.base;
  };
  while (next_epoch_ < epochs() && is_over(options_.plan->EpochEnd(next_epoch_))) ++next_epoch_;
}

uint64_t CutPlan::epochs() const { return options_.plan.has_value() ? options_.plan->epochs() : 0; }

uint64_t CutPlan::mandatory() const {
  if (late_cut_.has_value()) return *late_cut_;
  if (!options_.plan.has_value()) return std::numeric_limits<uint64_t>::max();
  return options_.evaluates ? options_.plan->EpochEnd(next_epoch_) : options_.plan->total_steps();
}

uint64_t CutPlan::AheadOf(const Steps& steps) const {
  return static_cast<uint64_t>(2 * steps.per_second * ToSeconds(accepting_));
}

std::optional<CutPlan::Cut> CutPlan::Due(Time now, const Steps& steps, bool asked,
                                         bool evaluated) const {
  const Job::Checkpoint& when = options_.when;
  const uint64_t next = steps.first_unleased;
  const uint64_t ahead = AheadOf(steps);
  const uint64_t near = next + steps.leased + kMarginSteps + ahead;
  const bool must = near >= mandatory();
  const bool hold = must && options_.evaluates && next_epoch_ < epochs() && !evaluated;
  // An evaluation does not need the files that could not be written. But a failed mandatory cut is
  // always retried after a pause.
  if (now < no_cut_before_ && (mandatory_failed_ || (!hold && !asked))) return std::nullopt;
  if (must) return Cut{mandatory(), hold};
  // Far enough ahead that no worker waits for a lease until the cut is accepted.
  const uint64_t soon = std::min(CutFrom(next + ahead), mandatory());
  if (asked || last_.failed) return Cut{soon};
  if (when.every_steps > 0 && near >= last_.step + when.every_steps) {
    const uint64_t wanted = last_.step + when.every_steps;
    return Cut{wanted < next ? soon : std::min(CutFrom(wanted), mandatory())};
  }
  const auto every = FromSeconds(when.every_seconds);
  if (every > Time{} && now - last_.at >= every && next > last_.step) return Cut{soon};
  return std::nullopt;
}

void CutPlan::Began(uint64_t step, Time now) {
  last_ = {.step = step, .at = now};
  mandatory_failed_ = false;
}

void CutPlan::Accepted(uint64_t step, Time now) {
  accepting_ = std::min(std::max(now - last_.at, accepting_ / 2), kLongestAccepting);
  if (step != mandatory() || next_epoch_ >= epochs()) return;
  cut_epoch_ = next_epoch_;
  if (!options_.awaits_results) NextEpoch();
}

void CutPlan::NextEpoch() {
  ++next_epoch_;
  late_cut_.reset();
  late_cuts_ = 0;
}

void CutPlan::Cancelled(uint64_t step, std::optional<uint64_t> highest_step, const Steps& steps,
                        Time now) {
  last_.failed = options_.when.every_steps > 0 || options_.when.every_seconds > 0;
  no_cut_before_ = now + kRetryCutAfter;
  mandatory_failed_ = step == mandatory();
  if (!highest_step.has_value() || !mandatory_failed_) return;
  // After a takeover a worker may be further than the coordinator knows. The first retry is above
  // all these steps and comes at once. Further retries pause, so that a ps that keeps rejecting is
  // not asked without end.
  late_cut_ = std::min(CutFrom(std::max(*highest_step + 1, steps.first_unleased)),
                       options_.plan->total_steps());
  const int tries = std::min(late_cuts_++, 10);
  no_cut_before_ =
      now + (tries == 0 ? Time{} : std::min(kFirstPause * (1 << tries), kRetryCutAfter));
}

}  // namespace shoal
