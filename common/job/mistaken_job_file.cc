#include "common/job/mistaken_job_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/archive/keras_archive.h"
#include "common/base/text/shell_word.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

absl::Status DescribeFolder(const std::string& path) {
  std::error_code error;
  const std::string job = (fs::path(path) / "job.json").string();
  if (!fs::is_regular_file(job, error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": is a folder without a job.json; give a job file, which names the model and the "
        "data (docs/job-file.md)"));
  }
  if (!fs::is_directory(fs::path(path) / "checkpoints", error)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is a folder; give its job file: ", ShellWord(job)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": is the directory of a run, not a job file; to continue it:\n",
                   "  shoal train ", ShellWord(job), " --run_dir ", ShellWord(path)));
}

// `archive` is the model's path, for the command line of examples/from_keras.py.
std::string HowToWriteOne(const std::string& archive) {
  return absl::StrCat("(docs/job-file.md). To write a job for a compiled model:\n",
                      "  python examples/from_keras.py ", archive,
                      " job --training DATA --epochs 10");
}

absl::Status DescribeModel(const std::string& path, const std::string& what,
                           const std::string& archive) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": is ", what, ", not a job; a job names the model, data, loss and optimizer ",
      HowToWriteOne(archive)));
}

// Whether the file begins with bytes that no text contains.
bool LooksBinary(std::ifstream file) {
  std::string begin(512, ' ');
  file.read(begin.data(), begin.size());
  return std::any_of(begin.begin(), begin.end(), [](unsigned char byte) {
    return byte == 0x7f || (byte < ' ' && !absl::ascii_isspace(byte));
  });
}

}  // namespace

absl::Status CheckMistakenFile(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return DescribeFolder(path);
  // Opening a pipe would wait for a writer.
  if (!fs::is_regular_file(path, error)) return absl::OkStatus();
  if (IsZipArchive(path) && ReadArchivedModel(path).ok())
    return DescribeModel(path, "a Keras model", ShellWord(path));
  std::string begin(4, '\0');
  std::ifstream(path, std::ios::binary).read(begin.data(), begin.size());
  if (begin == "\x89HDF") return DescribeModel(path, "HDF5, probably a Keras model", "MODEL.keras");
  if (!LooksBinary(std::ifstream(path, std::ios::binary))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      path,
      ": is a binary file, not a job; a job is JSON that names the model, data, loss and "
      "optimizer ",
      HowToWriteOne("MODEL.keras")));
}

absl::Status CheckMistakenModel(const std::string& path, const json& root) {
  if (!root.is_object() || !root.contains("class_name") || !root.contains("config") ||
      root.contains("model") || root.contains("data")) {
    return absl::OkStatus();
  }
  return DescribeModel(path, absl::StrCat("a Keras model, ", ShortJson(root["class_name"])),
                       "MODEL.keras");
}

}  // namespace shoal
