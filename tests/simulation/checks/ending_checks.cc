#include "tests/simulation/checks/ending_checks.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/checkpoint/safetensors.h"
#include "common/run/history.h"
#include "common/step_plan/index_permutation.h"
#include "common/step_plan/step_plan.h"
#include "tests/simulation/expected_sums.h"

namespace shoal {

void EndingChecks::OnPowerLoss() const {
  const std::string model = job_.workload().run_dir + "/model";
  if (disk_.Exists(model)) CheckModel(model, /*of_now=*/false);
}

void EndingChecks::OnJobDone(const std::string& run_dir) const {
  CheckCheckpoints();
  if (!disk_.Exists(run_dir + "/model/model.json")) {
    return world_.Fail("the coordinator reports the job as done, but there is no saved model");
  }
  CheckModel(run_dir + "/model", /*of_now=*/true);
  CheckExamples();
}

Workload::Ending EndingChecks::EndingAsEvaluated() const {
  std::map<uint64_t, double> losses;
  for (const proto::EpochResult& epoch :
       ReadHistory(job_.workload().run_dir + "/history.csv", &disk_).value_or(History()).epochs) {
    if (epoch.has_test_loss()) losses[epoch.epoch()] = epoch.test_loss();
  }
  return job_.workload().EndingWith(losses);
}

// The last checkpoint is the newest. That of the best epoch is kept, however many came later.
void EndingChecks::CheckCheckpoints() const {
  const Workload::Ending ending = EndingAsEvaluated();
  const std::vector<StoredCheckpoint> stored = checkpoints_.Stored();
  if (stored.empty() || stored[0].manifest.cut_step != ending.last_step) {
    std::string there;
    for (const StoredCheckpoint& each : stored) {
      absl::StrAppend(&there, " ", each.directory, " of ", TermText(each.manifest.timeline));
    }
    world_.Fail("the coordinator reports the job as done, but no final checkpoint is the newest:" +
                there);
  }
  const std::optional<uint64_t> best = ending.best_step;
  const bool kept = std::any_of(stored.begin(), stored.end(), [&best](const auto& each) {
    return each.manifest.cut_step == best;
  });
  if (best.has_value() && !kept && !checkpoints_.any_damaged()) {
    world_.Fail(
        absl::StrCat("there is no checkpoint of the best epoch, which ends at step ", *best));
  }
}

void EndingChecks::CheckModel(const std::string& directory, bool of_now) const {
  const auto file = SafetensorsFile::Open(directory + "/model.safetensors", &disk_);
  if (!file.ok()) return world_.Fail("the saved model: " + file.status().ToString());
  // If the checkpoint of the best epoch was damaged on purpose, the model may have the last values.
  const Workload::Ending ending = EndingAsEvaluated();
  std::set<uint64_t> ends = {ending.result_step};
  if (checkpoints_.any_damaged()) ends.insert(ending.last_step);
  if (!of_now && job_.former_end().has_value()) ends.insert(*job_.former_end());
  const ExpectedSums& sums = job_.sums();
  for (size_t v = 0; v < sums.variables().size(); ++v) {
    if (job_.sums_in_slot() && sums.variables()[v].has_slots()) continue;
    const TensorEntry* const entry = (*file)->Find(sums.variables()[v].name);
    if (entry == nullptr) return world_.Fail("the saved model lacks a variable");
    const absl::StatusOr<std::vector<float>> values = (*file)->ReadFloats(*entry);
    if (!values.ok()) return world_.Fail("the saved model: " + values.status().ToString());
    for (size_t i = 0; i < values->size(); ++i) {
      std::erase_if(ends, [&](uint64_t end) {
        return (*values)[i] != sums.Below(end, static_cast<int>(v), i);
      });
      if (!ends.empty()) continue;
      return world_.Fail(
          absl::StrCat("the saved model is not the sum of the steps below ", ending.result_step));
    }
  }
}

// The final lineage has each step once, so the plan alone decides how often an example is used.
void EndingChecks::CheckExamples() const {
  const StepPlan steps = job_.workload().plan();
  std::map<std::pair<uint64_t, uint64_t>, int> uses;
  for (uint64_t step = 0; step < steps.total_steps(); ++step) {
    const StepRange range = steps.Range(step);
    const IndexPermutation order(steps.examples(), job_.workload().job.seed, range.epoch);
    for (uint64_t i = 0; i < range.count; ++i) ++uses[{range.epoch, order(range.first + i)}];
  }
  for (const auto& [example, count] : uses) {
    if (count != 1) world_.Fail("an example is used twice in an epoch");
  }
}

}  // namespace shoal
