#include "cli/dataset_report.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/data_formats.h"

namespace shoal {
namespace {

// Of the files of CIFAR's binary versions, by their own names.
bool HasCifar100Name(const std::string& name) { return name == "train.bin" || name == "test.bin"; }

}  // namespace

DataSource GuessDataSource(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  std::string extension = name.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  DataSource source;
  source.paths = {path};
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    source.format = "image_folder";
  } else if (extension == ".jpg" || extension == ".jpeg" || extension == ".png") {
    source.format = "pictures";
  } else if (extension == ".npz") {
    source.format = "npz";
  } else if (extension == ".csv" || extension == ".tsv" || name.string().ends_with(".csv.gz")) {
    source.format = "csv";
    if (extension == ".tsv") source.delimiter = "\t";
  } else if (name.string().find("tfrecord") != std::string::npos) {
    source.format = "tfrecord";
  } else if (extension == ".bin") {
    source.format = HasCifar100Name(name.string()) ? "cifar100" : "cifar10";
  }
  return source;
}

absl::StatusOr<std::string> InspectData(const DataSource& source, uint64_t* damaged) {
  const DataFormat* format = FindDataFormat(source.format);
  if (format != nullptr && format->inspect == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.paths[0],
                     " is a picture; give a folder that has a folder of pictures for each class"));
  }
  if (format == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the format \"", source.format, "\" is not known"));
  }
  std::error_code error;
  const bool pattern = source.paths[0].find_first_of("*?[") != std::string::npos;
  if (!pattern && !std::filesystem::exists(source.paths[0], error) && !error) {
    return absl::NotFoundError(source.paths[0] + ": there is no such file or folder");
  }
  SHOAL_ASSIGN_OR_RETURN(const DataReport report, format->inspect(source));
  *damaged = report.damaged_count;
  std::string text = absl::StrCat("format: ", source.format, "\n");
  for (const std::string& line : report.lines) absl::StrAppend(&text, line, "\n");
  absl::StrAppend(&text, "damaged: ", report.damaged_count, "\n");
  for (const std::string& line : report.damaged) absl::StrAppend(&text, "  ", line, "\n");
  if (report.damaged_count > report.damaged.size()) {
    absl::StrAppend(&text, "  and ", report.damaged_count - report.damaged.size(), " more\n");
  }
  if (report.damaged_count > 0 &&
      (source.format == "image_folder" || source.format == "tfrecord")) {
    text += "A job leaves such examples out with \"damaged\": \"skip\" in its data.\n";
  }
  return text;
}

}  // namespace shoal
