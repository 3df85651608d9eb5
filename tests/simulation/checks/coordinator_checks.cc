#include "tests/simulation/checks/coordinator_checks.h"

#include "absl/strings/str_cat.h"
#include "coordinator/steps/step_dispatcher.h"
#include "tests/ps/store/applied_steps.h"

namespace shoal {

void CoordinatorChecks::AfterCallback(const SimulatedProcess& process, const TrainingRun& run,
                                      const std::vector<const ParameterServer*>& servers) {
  const StepDispatcher* const steps = run.dispatcher();
  if (steps == nullptr) {
    compared_.erase(&process);
    return;
  }
  const std::pair now(steps->base(), steps->done_after_base().size());
  if (auto [before, is_new] = compared_.emplace(&process, now); !is_new) {
    if (before->second == now) return;
    before->second = now;
  }
  for (const ParameterServer* server : servers) {
    if (server->timeline() != run.timeline()) continue;
    const VariableStore& store = *server->variables();
    for (int k = 0; k < store.chunk_count(); ++k) {
      if (!store.chunk(k).layout().pushed()) continue;
      const AppliedSet& applied = store.chunk(k).applied();
      bool all = applied.base() >= steps->base() || CountSteps(applied) >= steps->base();
      for (uint64_t step = applied.base(); step < steps->base(); ++step) {
        all = all && applied.Contains(step);
      }
      for (const uint64_t step : steps->done_after_base()) all = all && applied.Contains(step);
      if (all) continue;
      world_.Fail(absl::StrCat(process.name(), " counts steps as done that chunk ", k, " of ps ",
                               store.options().ps_index, " has not applied (base ", steps->base(),
                               " there ", applied.base(), ")"));
      return;
    }
  }
}

}  // namespace shoal
