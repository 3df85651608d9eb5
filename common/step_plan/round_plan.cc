#include "common/step_plan/round_plan.h"

#include <algorithm>
#include <limits>

#include "common/base/check.h"

namespace shoal {

RoundPlan::RoundPlan(const StepPlan& plan, uint64_t max_steps)
    : plan_(plan),
      max_steps_(max_steps),
      rounds_per_epoch_(max_steps == 0 ? 0 : (plan.steps_per_epoch() - 1) / max_steps + 1) {
  SHOAL_CHECK(max_steps > 0 && max_steps <= std::numeric_limits<uint32_t>::max(),
              "max_steps=", max_steps);
}

Round RoundPlan::Of(uint64_t step) const {
  const uint64_t epoch = plan_.EpochOf(step);
  const uint64_t in_epoch = step % plan_.steps_per_epoch();
  const uint64_t first = step - in_epoch % max_steps_;
  const uint64_t count = std::min(max_steps_, plan_.EpochEnd(epoch) - first);
  return {.first = first,
          .count = static_cast<uint32_t>(count),
          .number = epoch * rounds_per_epoch_ + in_epoch / max_steps_};
}

uint64_t RoundPlan::StartAt(uint64_t step) const {
  return step < plan_.total_steps() ? Of(step).first : plan_.total_steps();
}

uint64_t RoundPlan::NextStart(uint64_t step) const {
  if (step >= plan_.total_steps()) return plan_.total_steps();
  const Round round = Of(step);
  return round.first < step ? round.end() : step;
}

uint64_t RoundPlan::CompleteRoundsBelow(uint64_t step) const {
  if (step == 0) return 0;
  const Round last = Of(std::min(step, plan_.total_steps()) - 1);
  return last.number + (last.end() <= step ? 1 : 0);
}

}  // namespace shoal
