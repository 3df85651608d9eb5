#include "ps/store/store_loading.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/model/initializer.h"

namespace shoal {
namespace {

absl::Status CheckSlots(const std::string& directory, const std::vector<std::string>& needed,
                        const std::vector<std::string>& there) {
  std::vector<std::string> missing;
  for (const std::string& name : needed) {
    if (std::find(there.begin(), there.end(), name) == there.end()) missing.push_back(name);
  }
  if (missing.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      directory, ": the job's optimizer needs the slots ", absl::StrJoin(missing, ", "),
      ", which this checkpoint of another optimizer lacks (it has: ",
      there.empty() ? "none" : absl::StrJoin(there, ", "),
      "); continue with the checkpoint's optimizer, or choose another --run_dir"));
}

}  // namespace

void FillFromSeed(VariableStore* store) {
  const VariableStore::Options& options = store->options();
  for (const VariableStore::RowRun& run : store->RowRuns()) {
    const size_t size = run.size_bytes / sizeof(float);
    if (run.slot.has_value()) {
      std::fill_n(run.out, size, options.optimizer->initial_slot_value(*run.slot));
      continue;
    }
    const Variable& variable = options.variables[run.shard->variable];
    InitializeRows(variable.initializer, variable.name, variable.shape, options.seed,
                   run.shard->row_begin, run.shard->row_end, {run.out, size});
  }
  store->SetApplied(0);
}

absl::Status FillFromCheckpoint(const std::string& directory, FileSystem* files,
                                VariableStore* store) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> checkpoint,
                         CheckpointReader::Open(directory, files));
  SHOAL_RETURN_IF_ERROR(CheckSlots(directory, store->options().optimizer->slot_names(),
                                   checkpoint->manifest().slots));
  for (const VariableStore::RowRun& run : store->RowRuns()) {
    SHOAL_RETURN_IF_ERROR(
        checkpoint->Read(run.tensor, run.shape, run.offset_bytes, run.out, run.size_bytes));
  }
  SHOAL_RETURN_IF_ERROR(checkpoint->Verify());
  store->SetApplied(checkpoint->manifest().cut_step);
  return absl::OkStatus();
}

}  // namespace shoal
