#include "cli/trained_model/data_choice.h"

#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/trained_model/data_source_guess.h"
#include "common/archive/zip_archive.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"
#include "worker/job/job_names.h"

namespace shoal {
namespace {

// Returns all data at `guessed.paths`, with the options of the job's first data source that
// `suits`.
DataSource LikeTheJobs(const DataSource& guessed, const Job& job,
                       const std::function<bool(const DataSource&)>& suits) {
  for (const DataSource* like : {&job.test, &job.training}) {
    if (like->empty() || !suits(*like)) continue;
    DataSource source = *like;
    source.format = guessed.format;
    source.paths = guessed.paths;
    if (absl::EndsWith(guessed.paths[0], ".tsv")) source.delimiter = guessed.delimiter;
    source.validation_split = source.test_split = 0;
    source.subset.clear();
    return source;
  }
  return guessed;
}

absl::StatusOr<DataSource> DataAt(const std::string& path, const Job& job) {
  SHOAL_RETURN_IF_ERROR(CheckExists(path));
  SHOAL_ASSIGN_OR_RETURN(const DataSource guessed, GuessDataSource(AbsolutePath(path)));
  return LikeTheJobs(guessed, job,
                     [&](const DataSource& data) { return data.format == guessed.format; });
}

bool IsOfPictures(const DataSource& source) {
  return source.format == "image_folder" || source.format == "pictures";
}

// Finds the array of an archive for each input: the only one, or the one with the input's name.
absl::StatusOr<std::vector<DataSource::Feature>> ArraysFor(const std::string& path,
                                                           const std::vector<Feature>& inputs) {
  SHOAL_ASSIGN_OR_RETURN(const ZipArchive archive, ZipArchive::Open(path));
  const std::vector<std::string> members = archive.Names();
  std::vector<DataSource::Feature> features;
  for (const Feature& input : inputs) {
    const bool only = members.size() == 1 && inputs.size() == 1;
    features.push_back(
        {input.name, {only ? std::string(absl::StripSuffix(members[0], ".npy")) : input.name}});
  }
  return features;
}

// Several files must have one format. Picture files and picture folders may mix.
absl::StatusOr<DataSource> InputsAt(const Job& job, const std::vector<std::string>& given,
                                    const std::vector<Feature>& inputs) {
  SHOAL_ASSIGN_OR_RETURN(DataSource guessed, GuessDataSource(given[0]));
  for (const std::string& path : given) {
    SHOAL_ASSIGN_OR_RETURN(const DataSource other, GuessDataSource(path));
    if (other.format == guessed.format || (IsOfPictures(other) && IsOfPictures(guessed))) continue;
    return absl::InvalidArgumentError(absl::StrCat(given[0], " is ", guessed.format, " and ", path,
                                                   " ", other.format, "; give data of one kind"));
  }
  guessed.paths = given;
  if (IsOfPictures(guessed)) {
    guessed.format = "pictures";
    return LikeTheJobs(guessed, job, [](const DataSource& data) {
      return IsOfPictures(data) || data.format == "tfrecord";
    });
  }
  if (given.size() > 1 && (guessed.format == "arrays" || guessed.format == "npz")) {
    return absl::InvalidArgumentError(absl::StrCat("give one file of examples at a time, not ",
                                                   given.size(), ": ", given[0], ", ", given[1]));
  }
  if (guessed.format == "arrays") {
    if (inputs.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          given[0], " is one file, and the model has ", inputs.size(),
          " inputs: give a file for each by --set data.test.features.INPUT=FILE, or one .npz"));
    }
    guessed.paths.clear();
    guessed.images = given[0];
    return guessed;
  }
  DataSource source = LikeTheJobs(
      guessed, job, [&](const DataSource& data) { return data.format == guessed.format; });
  if (source.format == "npz" && source.features.empty()) {
    SHOAL_ASSIGN_OR_RETURN(source.features, ArraysFor(given[0], inputs));
  }
  return source;
}

}  // namespace

absl::StatusOr<DataSource> ChooseData(const Job& job, const std::string& given) {
  DataSource source;
  if (given.empty() || given == "test") {
    if (job.test.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the job ", job.name,
          " has no test set; name a file or folder, or `training` for the training set"));
    }
    source = job.test;
  } else if (given == "training") {
    source = job.training;
  } else {
    SHOAL_ASSIGN_OR_RETURN(source, DataAt(given, job));
    if (source.format == "pictures") {
      return absl::InvalidArgumentError(absl::StrCat(
          given,
          " is a picture without a label; give a folder that has a folder of pictures for "
          "each class"));
    }
    if (source.format == "arrays") {
      return absl::InvalidArgumentError(
          absl::StrCat(given,
                       " is one file; give examples and labels as two files "
                       "by --set data.test.images=FILE --set data.test.labels=FILE"));
    }
    if (source.labels.empty() &&
        (source.format == "csv" || source.format == "npz" || source.format == "tfrecord")) {
      return absl::InvalidArgumentError(
          absl::StrCat(given, " is ", source.format, ", and no data of the job ", job.name,
                       " is; describe its features and labels with "
                       "--set 'data.test={\"format\": \"",
                       source.format, "\", \"path\": ..., \"features\": ..., \"labels\": ...}'"));
    }
  }
  source.cache.clear();
  return WithNamesOfJob(job, std::move(source));
}

absl::StatusOr<DataSource> ChooseInputs(const Job& job, const std::vector<std::string>& given,
                                        const std::vector<Feature>& inputs) {
  DataSource source;
  if (given.empty() || given[0] == "test" || given[0] == "training") {
    if (given.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", given[0],
          "` is the job's own data; give nothing else with it, or write a file of that ",
          "name as ./", given[0]));
    }
    SHOAL_ASSIGN_OR_RETURN(source, ChooseData(job, given.empty() ? "" : given[0]));
  } else {
    SHOAL_ASSIGN_OR_RETURN(source, InputsAt(job, given, inputs));
    SHOAL_ASSIGN_OR_RETURN(source, WithNamesOfJob(job, std::move(source)));
  }
  source.unlabelled = true;
  source.cache.clear();
  return source;
}

}  // namespace shoal
