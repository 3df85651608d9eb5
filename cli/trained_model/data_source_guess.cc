#include "cli/trained_model/data_source_guess.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/missing_path.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "worker/input/formats/arrays/idx_format.h"
#include "worker/input/formats/arrays/npy_format.h"

namespace shoal {
namespace {

// The files of CIFAR-100's binary version have these names.
bool HasCifar100Name(const std::string& name) { return name == "train.bin" || name == "test.bin"; }

// Requires that a file whose name tells no format begins like an array. Accepts unreadable paths
// and non-files, such as pipes, where reading would wait for a writer: the code that opens them
// reports the error.
absl::Status CheckIsArray(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  std::string head(16, 0);
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  const bool packed = head.starts_with("\x1f\x8b") || head.starts_with("PK\x03\x04");
  if (head.empty() || packed || IsIdx(head) || IsNpy(head)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": has an unknown format; its content begins with \"", Printable(head, 24),
      "\"; expected a folder of pictures, a picture (.jpg, .jpeg, .png), .npz, .csv, .tsv, "
      ".tfrecord, CIFAR's .bin, or an IDX or NPY array"));
}

}  // namespace

absl::StatusOr<DataSource> GuessDataSource(const std::string& path) {
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
  } else if (extension != ".npy" && extension != ".idx") {
    SHOAL_RETURN_IF_ERROR(CheckIsArray(path));
  }
  return source;
}

absl::Status CheckExists(const std::string& path) {
  std::error_code error;
  const bool pattern = path.find_first_of("*?[") != std::string::npos;
  if (pattern || std::filesystem::exists(path, error) || error) return absl::OkStatus();
  return MissingPath(path);
}

}  // namespace shoal
