#include "common/checkpoint/checkpoint_reader.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/nearest_name.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_verification.h"
#include "common/files/durable_file.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(
    const std::string& directory, FileSystem* files) {
  std::unique_ptr<CheckpointReader> reader(new CheckpointReader);
  reader->directory_ = AbsolutePath(directory);
  SHOAL_ASSIGN_OR_RETURN(reader->manifest_, Manifest::Read(reader->directory_, files));
  reader->file_system_ = files;
  for (const Manifest::File& file : reader->manifest_.files) {
    if (!absl::EndsWith(file.name, ".safetensors")) continue;
    const std::string path = absl::StrCat(reader->directory_, "/", file.name);
    SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<SafetensorsFile> opened,
                           SafetensorsFile::Open(path, files));
    if (opened->file_size() != file.size_bytes) {
      return absl::DataLossError(absl::StrCat(path, " is damaged: it has ", opened->file_size(),
                                              " bytes, the manifest says ", file.size_bytes));
    }
    for (const TensorEntry& entry : opened->tensors()) {
      if (!reader->tensors_.emplace(entry.name, opened.get()).second) {
        return absl::DataLossError(
            absl::StrCat(path, ": \"", entry.name, "\" is also in another file of the checkpoint"));
      }
      if (IsModelFile(file.name)) reader->variables_.push_back(entry);
    }
    reader->files_[file.name] = std::move(opened);
  }
  return reader;
}

absl::StatusOr<const SafetensorsFile*> CheckpointReader::FileOf(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found != tensors_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, file] : tensors_) names.push_back(known);
  const std::string nearest = NearestName(name, names);
  return absl::NotFoundError(absl::StrCat("checkpoint ", directory_, " has no \"", name, "\"",
                                          nearest.empty() ? "" : "; the nearest name there is \"",
                                          nearest, nearest.empty() ? "" : "\""));
}

absl::Status CheckpointReader::Verify() const {
  return VerifyCheckpoint({directory_, manifest_}, file_system_);
}

absl::Status CheckpointReader::Read(const std::string& name, const Shape& shape,
                                    uint64_t offset_bytes, void* out, uint64_t size_bytes) const {
  SHOAL_ASSIGN_OR_RETURN(const SafetensorsFile* const file, FileOf(name));
  const TensorEntry& entry = *file->Find(name);
  if (entry.shape != shape || entry.dtype != "F32") {
    return absl::InvalidArgumentError(
        absl::StrCat(file->path(), ": \"", name, "\" is ", entry.dtype, " of shape ",
                     ShapeToString(entry.shape), "; the model has F32 of ", ShapeToString(shape)));
  }
  return file->Read(entry, offset_bytes, out, size_bytes);
}

absl::Status CheckpointReader::ReadBytes(const std::string& name, uint64_t offset_bytes, void* out,
                                         uint64_t size_bytes) const {
  SHOAL_ASSIGN_OR_RETURN(const SafetensorsFile* const file, FileOf(name));
  return file->Read(*file->Find(name), offset_bytes, out, size_bytes);
}

}  // namespace shoal
