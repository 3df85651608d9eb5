#include "cli/trained_model/checkpoint_choice.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/text/nearest_name.h"
#include "common/checkpoint/checkpoint_verification.h"
#include "common/files/durable_file.h"
#include "common/run/evaluations.h"
#include "common/run/run_paths.h"
#include "common/run/run_verdict.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

bool IsDirectory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

absl::StatusOr<FoundCheckpoints> FindOne(const std::string& directory) {
  FoundCheckpoints found;
  absl::StatusOr<Manifest> manifest = Manifest::Read(directory);
  if (manifest.ok()) {
    found.checkpoints.push_back({directory, *std::move(manifest)});
  } else if (absl::IsNotFound(manifest.status())) {
    return absl::NotFoundError(
        absl::StrCat(directory, " is not a whole checkpoint: it has no ", kManifestName,
                     ", which is written last; it is being written, or was cancelled"));
  } else {
    found.problems.push_back(std::string(manifest.status().message()));
  }
  return found;
}

absl::StatusOr<StoredCheckpoint> FindNamed(const FoundCheckpoints& found, const std::string& name) {
  std::vector<std::string> names;
  for (const StoredCheckpoint& each : found.checkpoints) {
    names.push_back(NameOf(each));
    if (names.back() != name) continue;
    SHOAL_RETURN_IF_ERROR(VerifyCheckpoint(each));
    return each;
  }
  for (const std::string& problem : found.problems) {
    if (absl::StrContains(problem, absl::StrCat("/", name, "/")))
      return absl::DataLossError(problem);
  }
  const std::string nearest = NearestName(name, names);
  return absl::NotFoundError(
      absl::StrCat("there is no checkpoint \"", name, "\" in ", found.root, "; it has ",
                   absl::StrJoin(names, ", "),
                   nearest.empty() ? "" : absl::StrCat("; did you mean \"", nearest, "\"?")));
}

}  // namespace

absl::StatusOr<FoundCheckpoints> FindCheckpoints(const std::string& given) {
  const std::string path = AbsolutePath(given);
  if (!IsDirectory(path)) return absl::NotFoundError(absl::StrCat(path, " is not a directory"));
  std::error_code ignored;
  if (fs::exists(absl::StrCat(path, "/", kManifestName), ignored) ||
      absl::StartsWith(fs::path(path).filename().string(), "step-")) {
    return FindOne(path);
  }
  const std::string below = RunPaths{path}.checkpoints();
  FoundCheckpoints found;
  found.root = IsDirectory(below) ? below : path;
  found.run = IsDirectory(below) ? path : fs::path(path).parent_path().string();
  const CheckpointStore store(found.root);
  SHOAL_ASSIGN_OR_RETURN(found.checkpoints, store.List(&found.problems));
  SHOAL_ASSIGN_OR_RETURN(found.unfinished, store.Unfinished());
  if (found.checkpoints.empty() && found.problems.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no checkpoint in ", path,
                     "; give a run directory, its checkpoints/, or one step-* directory in it"));
  }
  return found;
}

absl::StatusOr<StoredCheckpoint> ChooseCheckpoint(const FoundCheckpoints& found,
                                                  const CheckpointChoice& choice,
                                                  std::vector<std::string>* notes) {
  if (found.root.empty() && (choice.best || !choice.name.empty())) {
    return absl::InvalidArgumentError(
        "RUN is already one checkpoint; to choose with --best or --checkpoint, give the run "
        "directory");
  }
  if (found.root.empty()) {
    if (found.checkpoints.empty()) return absl::DataLossError(found.problems.front());
    SHOAL_RETURN_IF_ERROR(VerifyCheckpoint(found.checkpoints.front()));
    return found.checkpoints.front();
  }
  if (!choice.name.empty()) return FindNamed(found, choice.name);
  if (choice.best) {
    SHOAL_ASSIGN_OR_RETURN(const RunVerdict::Best best, BestOf(RunPaths{found.run}));
    SHOAL_RETURN_IF_ERROR(VerifyCheckpoint(*best.checkpoint));
    notes->push_back(DescribeBest(best));
    return *best.checkpoint;
  }
  std::vector<std::string> passed_over;
  SHOAL_ASSIGN_OR_RETURN(std::optional<StoredCheckpoint> newest,
                         CheckpointStore(found.root).NewestVerified({}, &passed_over));
  if (!newest.has_value()) {
    return absl::DataLossError(absl::StrCat("no checkpoint in ", found.root, " can be read:\n  ",
                                            absl::StrJoin(passed_over, "\n  ")));
  }
  notes->insert(notes->end(), passed_over.begin(), passed_over.end());
  SHOAL_ASSIGN_OR_RETURN(StoredCheckpoint result, ResultOf(RunPaths{found.run}, *newest));
  if (result.directory != newest->directory) SHOAL_RETURN_IF_ERROR(VerifyCheckpoint(result));
  return result;
}

}  // namespace shoal
