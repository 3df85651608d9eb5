#include "cli/reports/checkpoint_report.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/display/text_table.h"
#include "cli/trained_model/checkpoint_choice.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"
#include "common/checkpoint/checkpoint_verification.h"
#include "common/run/run_verdict.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

std::string UnfinishedText(const std::vector<std::string>& unfinished) {
  std::string text;
  for (const std::string& directory : unfinished) {
    absl::StrAppend(&text, "no checkpoint: ", directory, " has no ", kManifestName,
                    ", which is written last: its writing is in progress, or was cancelled\n");
  }
  return text;
}

// Returns the time of the commit, as the file system recorded it.
absl::Time CommitTime(const StoredCheckpoint& checkpoint) {
  struct stat info;
  const std::string path = absl::StrCat(checkpoint.directory, "/", kManifestName);
  if (stat(path.c_str(), &info) != 0) return absl::UnixEpoch();
  return absl::TimeFromTimespec(info.st_mtim);
}

std::string DateText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S", time, absl::LocalTimeZone());
}

std::string AgeText(absl::Duration age) {
  const int64_t minutes = absl::ToInt64Minutes(age);
  if (minutes < 1) return absl::StrCat(std::max<int64_t>(0, absl::ToInt64Seconds(age)), " s ago");
  if (minutes < 2 * 60) return absl::StrCat(minutes, " min ago");
  if (minutes < 2 * 24 * 60) return absl::StrCat(minutes / 60, " h ago");
  return absl::StrCat(minutes / (24 * 60), " days ago");
}

// Returns the epoch of the checkpoint's last step.
std::string EpochText(const Manifest& manifest) {
  return manifest.total_steps == 0 ? "?" : absl::StrCat(manifest.epoch + 1);
}

// Returns, for each checkpoint that is a best one, the figures by which it is the best.
absl::StatusOr<std::map<std::string, std::set<std::string>>> BestFigures(const std::string& run) {
  std::map<std::string, std::set<std::string>> figures;
  if (run.empty()) return figures;
  SHOAL_ASSIGN_OR_RETURN(const RunVerdict verdict, VerdictOf(RunPaths{run}));
  SHOAL_RETURN_IF_ERROR(verdict.unread_evaluations);
  for (const RunVerdict::Best& best : verdict.best) {
    if (!best.checkpoint.has_value()) continue;
    figures[best.checkpoint->directory].insert(best.figure);
  }
  return figures;
}

std::string NotFiniteText(const Manifest& manifest) {
  return absl::StrCat("values in \"", manifest.not_finite, "\" are not finite numbers");
}

// A running job removes old checkpoints, the manifest first. Files that are missing then are not
// damage.
bool RemovedMeanwhile(const StoredCheckpoint& checkpoint) {
  return absl::IsNotFound(Manifest::Read(checkpoint.directory).status());
}

}  // namespace

absl::StatusOr<CheckpointReport> ListCheckpoints(const std::string& path, absl::Time now) {
  SHOAL_ASSIGN_OR_RETURN(FoundCheckpoints found, FindCheckpoints(path));
  CheckpointReport report;
  const auto figures = BestFigures(found.run);
  const std::map<std::string, std::set<std::string>> best =
      figures.ok() ? *figures : std::map<std::string, std::set<std::string>>();
  TextTable table({"step", "epoch", "<timeline", "size", "<written", "", "<directory", "<finite",
                   "<whole", best.empty() ? "" : "<best"});
  bool any = false;
  for (const StoredCheckpoint& checkpoint : found.checkpoints) {
    const absl::Status status = VerifyCheckpoint(checkpoint);
    if (RemovedMeanwhile(checkpoint)) continue;
    if (!status.ok()) found.problems.push_back(std::string(status.message()));
    const Manifest& manifest = checkpoint.manifest;
    const absl::Time time = CommitTime(checkpoint);
    table.AddRow({absl::StrCat(manifest.cut_step), EpochText(manifest), TermText(manifest.timeline),
                  FormatBytes(checkpoint.size_bytes()), DateText(time), AgeText(now - time),
                  fs::path(checkpoint.directory).filename().string(),
                  manifest.finite() ? "yes" : "NO", status.ok() ? "yes" : "NO",
                  best.contains(checkpoint.directory)
                      ? absl::StrJoin(best.at(checkpoint.directory), ", ")
                      : ""});
    any = true;
  }
  if (any) report.text = table.ToString();
  if (!figures.ok()) {
    absl::StrAppend(&report.text,
                    "the best checkpoint is unknown: ", std::string(figures.status().message()),
                    "\n");
  }
  for (const std::string& problem : found.problems) {
    absl::StrAppend(&report.text, "BAD  ", problem, "\n");
  }
  absl::StrAppend(&report.text, UnfinishedText(found.unfinished));
  report.all_intact = found.problems.empty();
  return report;
}

absl::StatusOr<std::string> ShowCheckpoint(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const FoundCheckpoints found, FindCheckpoints(path));
  if (found.checkpoints.empty()) return absl::DataLossError(found.problems.front());
  const StoredCheckpoint& checkpoint = found.checkpoints.front();
  const Manifest& manifest = checkpoint.manifest;
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                         CheckpointReader::Open(checkpoint.directory));
  TextTable facts({"<checkpoint", "<" + checkpoint.directory});
  facts.AddRow({"job", absl::StrCat(manifest.job_name, ", fingerprint ",
                                    ChecksumText(manifest.job_fingerprint))});
  facts.AddRow(
      {"step", absl::StrCat(manifest.cut_step, " of ",
                            manifest.total_steps == 0 ? "?" : absl::StrCat(manifest.total_steps),
                            manifest.finished() ? " (finished)" : "")});
  facts.AddRow({"epoch", absl::StrCat(EpochText(manifest), ", ", manifest.epoch_position,
                                      " of its examples used")});
  facts.AddRow({"timeline", TermText(manifest.timeline)});
  facts.AddRow({"slots", manifest.slots.empty() ? "none" : absl::StrJoin(manifest.slots, ", ")});
  facts.AddRow({"finite", manifest.finite() ? "all values" : "NO: " + NotFiniteText(manifest)});
  facts.AddRow({"size", absl::StrCat(FormatBytes(checkpoint.size_bytes()), " in ",
                                     manifest.files.size(), " files")});
  facts.AddRow({"written", absl::StrCat(DateText(CommitTime(checkpoint)), " by Shoal ",
                                        manifest.program_version, ", format version ",
                                        manifest.format_version)});
  TextTable variables({"<variable", "<shape", "parameters"});
  int64_t parameters = 0;
  for (const TensorEntry& variable : reader->variables()) {
    variables.AddRow(
        {variable.name, ShapeToString(variable.shape), absl::StrCat(ElementCount(variable.shape))});
    parameters += ElementCount(variable.shape);
  }
  variables.AddRow({"total", "", absl::StrCat(parameters)});
  return absl::StrCat(facts.ToString(), "\n", variables.ToString());
}

absl::StatusOr<CheckpointReport> VerifyAllFiles(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const FoundCheckpoints found, FindCheckpoints(path));
  CheckpointReport report;
  const auto add_bad = [&report](const std::string& problem) {
    absl::StrAppend(&report.text, "  BAD  ", problem, "\n");
    report.all_intact = false;
  };
  for (const StoredCheckpoint& checkpoint : found.checkpoints) {
    std::vector<absl::Status> statuses;
    for (const Manifest::File& file : checkpoint.manifest.files) {
      statuses.push_back(VerifyFile(checkpoint, file));
    }
    absl::StrAppend(&report.text, checkpoint.directory, "\n");
    if (RemovedMeanwhile(checkpoint)) {
      absl::StrAppend(&report.text, "  removed meanwhile by its job\n");
      continue;
    }
    for (size_t i = 0; i < statuses.size(); ++i) {
      const Manifest::File& file = checkpoint.manifest.files[i];
      if (statuses[i].ok()) {
        absl::StrAppend(&report.text, "  ok   ", file.name, "  ", FormatBytes(file.size_bytes),
                        "  crc32c ", ChecksumText(file.crc32c), "\n");
      } else {
        add_bad(std::string(statuses[i].message()));
      }
    }
    absl::StrAppend(&report.text, "  ok   ", kManifestName, "\n");
    if (!checkpoint.manifest.finite())
      absl::StrAppend(&report.text, "  NOT FINITE: ", NotFiniteText(checkpoint.manifest), "\n");
  }
  for (const std::string& problem : found.problems) add_bad(problem);
  absl::StrAppend(&report.text, UnfinishedText(found.unfinished));
  return report;
}

}  // namespace shoal
