#include "common/checkpoint/model_export.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/safetensors.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
constexpr uint64_t kMaxModelJsonBytes = uint64_t{1} << 30;

absl::Status WriteVariables(const CheckpointReader& reader, const std::string& slot,
                            const std::string& path, FileSystem* files) {
  std::vector<std::pair<std::string, Shape>> tensors;
  for (const TensorEntry& entry : reader.variables()) tensors.emplace_back(entry.name, entry.shape);
  const Manifest& manifest = reader.manifest();
  const SafetensorsLayout layout = LayOutSafetensors(
      tensors, {{"job", manifest.job_name}, {"steps", absl::StrCat(manifest.cut_step)}});
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         files->Open(path, FileSystem::Mode::kCreate));
  SHOAL_RETURN_IF_ERROR(file->Allocate(layout.file_size));
  SHOAL_RETURN_IF_ERROR(file->WriteAt(0, layout.header.data(), layout.header.size()));
  std::vector<char> piece(kPieceBytes);
  for (const TensorEntry& tensor : layout.tensors) {
    const std::string of_slot = absl::StrCat(slot, "/", tensor.name);
    const std::string& source = reader.Has(of_slot) ? of_slot : tensor.name;
    for (uint64_t offset = 0; offset < tensor.size;) {
      const uint64_t size = std::min(kPieceBytes, tensor.size - offset);
      SHOAL_RETURN_IF_ERROR(reader.Read(source, tensor.shape, offset, piece.data(), size));
      SHOAL_RETURN_IF_ERROR(file->WriteAt(tensor.begin + offset, piece.data(), size));
      offset += size;
    }
  }
  return file->Sync();
}

absl::Status WriteModel(const StoredCheckpoint& checkpoint, const std::string& directory,
                        const std::string& slot, FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                         CheckpointReader::Open(checkpoint.directory, files));
  SHOAL_ASSIGN_OR_RETURN(const std::string model_json,
                         ReadSmallFile(absl::StrCat(checkpoint.directory, "/", kModelName),
                                       kMaxModelJsonBytes, files));
  SHOAL_RETURN_IF_ERROR(WriteNewFile(absl::StrCat(directory, "/", kModelName), model_json, files));
  SHOAL_RETURN_IF_ERROR(
      WriteVariables(*reader, slot, absl::StrCat(directory, "/", kExportedVariablesName), files));
  SHOAL_RETURN_IF_ERROR(reader->Verify());
  return files->SyncDirectory(directory);
}

// Rejects a directory with anything other than an exported model.
absl::Status CheckReplaceable(const std::string& directory, FileSystem* files) {
  const absl::StatusOr<std::vector<FileSystem::Entry>> entries = files->List(directory);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(entries.status());
  for (const FileSystem::Entry& entry : *entries) {
    if (entry.name == kModelName || entry.name == kExportedVariablesName) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("cannot save the model in ", directory, ": it holds \"", entry.name,
                     "\", which is not part of a saved model; name a new directory"));
  }
  return absl::OkStatus();
}

void RemoveIfEmpty(const std::string& directory, FileSystem* files) {
  const absl::StatusOr<std::vector<FileSystem::Entry>> entries = files->List(directory);
  if (entries.ok() && entries->empty()) (void)files->RemoveTree(directory);
}

// Moves `from` to `to`. Returns the new path of the previous content of `to`, or "" if there was
// none. After an error, `to` has its previous content, or the message says where that is.
absl::StatusOr<std::string> Replace(const std::string& from, const std::string& to,
                                    FileSystem* files) {
  // Once the name `from` is free, another process may use it.
  const absl::Status renamed = files->Rename(from, to);
  if (renamed.ok()) return "";
  if (!files->Exists(to)) return renamed;
  if (files->Exchange(from, to).ok()) return from;
  // Some file systems cannot exchange two names. Move the old directory away first.
  SHOAL_ASSIGN_OR_RETURN(const std::string away, MakeNewDirectory(absl::StrCat(to, ".old"), files));
  if (const absl::Status moved = files->Rename(to, away); !moved.ok()) {
    RemoveIfEmpty(away, files);
    return moved;
  }
  if (const absl::Status moved = files->Rename(from, to); !moved.ok()) {
    if (files->Rename(away, to).ok()) return moved;
    return absl::Status(moved.code(), absl::StrCat(std::string(moved.message()),
                                                   "; the previous content is in ", away));
  }
  return away;
}

}  // namespace

absl::Status ExportModel(const StoredCheckpoint& checkpoint, const std::string& directory,
                         const std::string& slot, FileSystem* files) {
  const std::string target = AbsolutePath(directory);
  const std::string parent = fs::path(target).parent_path().string();
  SHOAL_RETURN_IF_ERROR(CheckReplaceable(target, files));
  SHOAL_RETURN_IF_ERROR(MakeDirectories(parent, files));
  SHOAL_ASSIGN_OR_RETURN(const std::string partial,
                         MakeNewDirectory(absl::StrCat(target, ".partial"), files));
  const absl::Status written = WriteModel(checkpoint, partial, slot, files);
  const absl::StatusOr<std::string> replaced =
      written.ok() ? Replace(partial, target, files) : written;
  if (!replaced.ok()) {
    (void)files->RemoveTree(partial);
    return replaced.status();
  }
  // Removes the old one only after the new one is safe from a power loss.
  SHOAL_RETURN_IF_ERROR(files->SyncDirectory(parent));
  if (!replaced->empty()) (void)files->RemoveTree(*replaced);
  return absl::OkStatus();
}

}  // namespace shoal
