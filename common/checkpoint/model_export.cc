#include "common/checkpoint/model_export.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/durable_file.h"
#include "common/checkpoint/safetensors.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr char kVariablesName[] = "model.safetensors";
constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxModelJsonBytes = uint64_t{1} << 30;

absl::Status WriteVariables(const CheckpointReader& reader, const std::string& path) {
  std::vector<std::pair<std::string, Shape>> tensors;
  for (const TensorEntry& entry : reader.variables()) tensors.emplace_back(entry.name, entry.shape);
  const Manifest& manifest = reader.manifest();
  const SafetensorsLayout layout = LayOutSafetensors(
      tensors, {{"job", manifest.job_name}, {"steps", absl::StrCat(manifest.cut_step)}});
  SHOAL_ASSIGN_OR_RETURN(const OpenFile file, OpenFile::Open(path, OpenFile::Mode::kCreate));
  SHOAL_RETURN_IF_ERROR(file.Allocate(layout.file_size));
  SHOAL_RETURN_IF_ERROR(file.WriteAt(0, layout.header.data(), layout.header.size()));
  std::vector<char> piece(kPieceBytes);
  for (const TensorEntry& tensor : layout.tensors) {
    for (uint64_t offset = 0; offset < tensor.size;) {
      const uint64_t size = std::min(kPieceBytes, tensor.size - offset);
      SHOAL_RETURN_IF_ERROR(reader.Read(tensor.name, tensor.shape, offset, piece.data(), size));
      SHOAL_RETURN_IF_ERROR(file.WriteAt(tensor.begin + offset, piece.data(), size));
      offset += size;
    }
  }
  return file.Sync();
}

absl::Status WriteModel(const StoredCheckpoint& checkpoint, const std::string& directory) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                         CheckpointReader::Open(checkpoint.directory, /*verify=*/true));
  SHOAL_ASSIGN_OR_RETURN(
      const std::string model_json,
      ReadSmallFile(absl::StrCat(checkpoint.directory, "/", kModelName), kMaxModelJsonBytes));
  SHOAL_RETURN_IF_ERROR(WriteNewFile(absl::StrCat(directory, "/", kModelName), model_json));
  SHOAL_RETURN_IF_ERROR(WriteVariables(*reader, absl::StrCat(directory, "/", kVariablesName)));
  return SyncDirectory(directory);
}

// Refuses to replace what is not an exported model.
absl::Status CheckReplaceable(const std::string& directory) {
  std::error_code failed;
  if (!fs::exists(directory, failed) && !failed) return absl::OkStatus();
  fs::directory_iterator entry(directory, failed);
  while (!failed && entry != fs::directory_iterator()) {
    const std::string name = entry->path().filename().string();
    if (name != kModelName && name != kVariablesName) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot save the model in ", directory, ": it holds \"", name,
                       "\", which is no part of a saved model; name a new directory"));
    }
    entry.increment(failed);
  }
  if (failed) return FileError(failed.value(), "list", directory);
  return absl::OkStatus();
}

// Puts `from` in the place of `to`. Afterwards `from` is gone or holds what was at `to`.
absl::Status Replace(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return absl::OkStatus();
  if (errno != ENOTEMPTY && errno != EEXIST) return FileError(errno, "rename to", to);
  if (renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    return absl::OkStatus();
  }
  // Not every file system can exchange: then the old one moves out of the way first.
  SHOAL_ASSIGN_OR_RETURN(const std::string away, MakeNewDirectory(absl::StrCat(to, ".old")));
  if (rename(to.c_str(), away.c_str()) != 0) return FileError(errno, "rename", to);
  if (rename(from.c_str(), to.c_str()) != 0) return FileError(errno, "rename to", to);
  std::error_code ignored;
  fs::remove_all(away, ignored);
  return absl::OkStatus();
}

}  // namespace

absl::Status ExportModel(const StoredCheckpoint& checkpoint, const std::string& directory) {
  const std::string target = AbsolutePath(directory);
  const std::string parent = fs::path(target).parent_path().string();
  SHOAL_RETURN_IF_ERROR(CheckReplaceable(target));
  SHOAL_RETURN_IF_ERROR(MakeDirectories(parent));
  SHOAL_ASSIGN_OR_RETURN(const std::string partial,
                         MakeNewDirectory(absl::StrCat(target, ".partial")));
  absl::Status status = WriteModel(checkpoint, partial);
  if (status.ok()) status = Replace(partial, target);
  std::error_code ignored;
  fs::remove_all(partial, ignored);
  SHOAL_RETURN_IF_ERROR(status);
  return SyncDirectory(parent);
}

}  // namespace shoal
