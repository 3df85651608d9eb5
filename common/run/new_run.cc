#include "common/run/new_run.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/checkpoint/model_export.h"

namespace shoal {

bool HasModel(const RunPaths& run, FileSystem* files) {
  return files->Exists(absl::StrCat(run.model(), "/", kExportedVariablesName));
}

absl::Status CheckReplacesNothing(const RunPaths& run, FileSystem* files) {
  if (!HasModel(run, files)) return absl::OkStatus();
  std::vector<std::string> there = {run.model()};
  if (files->Exists(run.history())) there.push_back(run.history());
  return absl::FailedPreconditionError(absl::StrCat(
      run.directory,
      ": an ended training has no checkpoint left here: a new one would begin at step 0 and "
      "replace\n  ",
      absl::StrJoin(there, "\n  "), "\nChoose another --run_dir, or move that away first."));
}

}  // namespace shoal
