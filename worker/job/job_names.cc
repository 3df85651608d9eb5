#include "worker/job/job_names.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "worker/input/dataset/data_formats.h"

namespace shoal {
namespace {

constexpr char kImageFolder[] = "image_folder";
constexpr char kCsv[] = "csv";
// The max size of all names in a job: the job is sent to every task and stored in every checkpoint.
constexpr size_t kMaxBytes = 1 << 20;

bool HasNamedColumns(const DataSource& data) { return data.format == kCsv && data.header; }

// The columns of a job's inputs in tables with names: those of the job, or all columns of the
// training set in their order there. Empty if the file is not on this machine.
absl::StatusOr<std::vector<DataSource::Feature>> ColumnsOfJob(const Job& job) {
  if (!HasNamedColumns(job.training) || !job.training.features.empty())
    return job.training.features;
  absl::StatusOr<std::vector<std::string>> names = ColumnsOf(job.training);
  if (absl::IsNotFound(names.status())) return std::vector<DataSource::Feature>();
  SHOAL_RETURN_IF_ERROR(names.status());
  // Several unnamed columns can only be identified by their position.
  if (std::count(names->begin(), names->end(), "") > 1) return std::vector<DataSource::Feature>();
  return std::vector<DataSource::Feature>{{.from = *std::move(names)}};
}

// Checks that `data` has the columns of the training set. Opening it reports a file that is missing
// or unreadable.
absl::Status CheckItHasColumns(const DataSource& data) {
  std::vector<std::string> wanted;
  for (const DataSource::Feature& feature : data.features)
    wanted.insert(wanted.end(), feature.from.begin(), feature.from.end());
  const absl::Status found = CheckColumns(data, wanted);
  if (!absl::IsInvalidArgument(found)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(found.message()),
                   "; it is a column of the training set: name the features of this set in the "
                   "same order, in the job or by --set 'data.test.features=[...]'"));
}

bool FitJob(const std::vector<std::string>& names) {
  size_t bytes = 0;
  for (const std::string& name : names) {
    bytes += name.size();
    if (name.empty() || Printable(name, name.size()) != name) return false;
  }
  return bytes <= kMaxBytes;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ClassNamesOfJob(const Job& job) {
  if (job.training.format != kImageFolder) return std::vector<std::string>();
  absl::StatusOr<std::vector<std::string>> names = ClassNamesOf(job.training);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>();
  return names;
}

absl::StatusOr<DataSource> WithNamesOfJob(const Job& job, DataSource data) {
  if (HasNamedColumns(data) && HasNamedColumns(job.training) && data.features.empty()) {
    SHOAL_ASSIGN_OR_RETURN(data.features, ColumnsOfJob(job));
    SHOAL_RETURN_IF_ERROR(CheckItHasColumns(data));
  }
  if (data.format != kImageFolder) return data;
  SHOAL_ASSIGN_OR_RETURN(std::vector<std::string> names, ClassNamesOfJob(job));
  if (names.empty()) return data;
  if (!data.class_names.empty() && data.class_names != names) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.paths[0], ": \"class_names\" are not those of the training set ",
        job.training.paths[0], ", by which the model numbers its classes; leave them out here"));
  }
  data.class_names = std::move(names);
  return data;
}

absl::Status CheckClassesOfTraining(const Job& job) {
  if (job.training.format != kImageFolder || job.training.class_names.empty())
    return absl::OkStatus();
  DataSource unnamed = job.training;
  unnamed.class_names.clear();
  const absl::StatusOr<std::vector<std::string>> folders = ClassNamesOf(unnamed);
  if (absl::IsNotFound(folders.status())) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(folders.status());
  for (const std::string& name : job.training.class_names) {
    if (std::binary_search(folders->begin(), folders->end(), name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(job.training.paths[0], ": has no folder \"", Printable(name, kMaxNameBytes),
                     "\", which \"class_names\" name; the training set must have one for each"));
  }
  return absl::OkStatus();
}

absl::Status WriteNames(Job* job) {
  SHOAL_ASSIGN_OR_RETURN(std::vector<std::string> classes, ClassNamesOfJob(*job));
  if (FitJob(classes)) job->training.class_names = std::move(classes);
  if (!HasNamedColumns(job->training) || !job->training.features.empty()) return absl::OkStatus();
  SHOAL_ASSIGN_OR_RETURN(std::vector<DataSource::Feature> columns, ColumnsOfJob(*job));
  if (!columns.empty() && FitJob(columns[0].from)) job->training.features = std::move(columns);
  return absl::OkStatus();
}

void MatchColumnNames(const Job& run, Job* job) {
  std::vector<DataSource::Feature>& named = job->training.features;
  if (run.training.format != kCsv || job->training.format != kCsv) return;
  // Without names, the single input has all columns.
  if (!run.training.features.empty() || named.size() != 1) return;
  const absl::StatusOr<std::vector<std::string>> columns = ColumnsOf(run.training);
  if (columns.ok() && *columns == named[0].from) named.clear();
}

}  // namespace shoal
