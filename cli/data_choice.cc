#include "cli/data_choice.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/dataset_report.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

// All of what is at `path`, read as the job reads data of that format.
DataSource DataAt(const std::string& path, const Job& job) {
  DataSource guessed = GuessDataSource(AbsolutePath(path));
  for (const DataSource* like : {&job.test, &job.training}) {
    if (like->empty() || like->format != guessed.format) continue;
    DataSource source = *like;
    source.paths = std::move(guessed.paths);
    source.validation_split = source.test_split = 0;
    source.subset.clear();
    return source;
  }
  return guessed;
}

}  // namespace

absl::StatusOr<DataSource> ChooseData(const Job& job, const std::string& given) {
  DataSource source;
  if (given.empty() || given == "test") {
    if (job.test.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the job ", job.name,
          " has no test set; name the data: a file or folder, or `training`, which is what it was "
          "trained on"));
    }
    source = job.test;
  } else if (given == "training") {
    source = job.training;
  } else {
    source = DataAt(given, job);
    if (source.format == "arrays") {
      return absl::InvalidArgumentError(absl::StrCat(
          given,
          " is one file, and such data are a file of examples and one of labels: give them "
          "by --set data.test.images=FILE --set data.test.labels=FILE"));
    }
    if (source.labels.empty() &&
        (source.format == "csv" || source.format == "npz" || source.format == "tfrecord")) {
      return absl::InvalidArgumentError(
          absl::StrCat(given, " is ", source.format, ", which the job ", job.name,
                       " has no data of, so that it does not say what in it the labels are; "
                       "describe it with --set 'data.test={\"format\": \"",
                       source.format, "\", \"path\": ..., \"features\": ..., \"labels\": ...}'"));
    }
  }
  source.cache.clear();
  return source;
}

}  // namespace shoal
