#include "tests/simulation/workload/workload.h"

#include <algorithm>

#include "tests/simulation/random.h"

namespace shoal {

double Workload::TestLoss(uint64_t epoch) const {
  return static_cast<double>(Random(seed * 0xd6e8feb86659fd93 + epoch).Below(7));
}

Workload::Ending Workload::EndingWith(const std::map<uint64_t, double>& losses) const {
  const StepPlan steps = plan();
  Ending found;
  found.last_step = found.result_step = steps.total_steps();
  if (job.callbacks.empty()) return found;
  const Callback& first = job.callbacks.front();
  double best = 0;
  uint64_t waited = 0;
  for (uint64_t epoch = 0; epoch < steps.epochs(); ++epoch) {
    const auto given = losses.find(epoch);
    const double loss = given == losses.end() ? TestLoss(epoch) : given->second;
    if (!found.best_step.has_value() || loss < best) {
      best = loss;
      waited = 0;
      found.best_step = steps.EpochEnd(epoch);
    } else if (++waited >= first.monitor.patience.value_or(steps.epochs() + 1)) {
      found.last_step = found.result_step = steps.EpochEnd(epoch);
      break;
    }
  }
  if (first.restores_best) found.result_step = *found.best_step;
  return found;
}

std::vector<std::string> Workload::sums_slots() const {
  switch (sums_in) {
    case SumsIn::kValues:
      return {};
    case SumsIn::kMomentum:
      return {"sgd_momentum"};
    case SumsIn::kSquares:
      return {"adagrad_accumulator"};
    case SumsIn::kDelayed:
      return {"delayed_nesterov_momentum", "delayed_nesterov_buffer"};
  }
  return {};
}

float Workload::SumAt(const std::vector<std::span<const float>>& slots, size_t element) const {
  if (sums_in != SumsIn::kDelayed) return slots[0][element];
  return -(static_cast<float>(momentum_every) * slots[0][element] + slots[1][element]);
}

std::optional<RoundPlan> Workload::rounds() const {
  if (!job.strategy.in_rounds()) return std::nullopt;
  return RoundPlan(plan(), job.strategy.gradients_per_update);
}

Time Workload::FaultsEnd() const {
  Time end{};
  for (const Fault& fault : faults) end = std::max(end, fault.at + fault.duration);
  return end;
}

bool Workload::OnlyCertificates() const {
  return !faults.empty() && std::all_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == Fault::Kind::kNewCertificates && fault.duration == Time{};
  });
}

}  // namespace shoal
