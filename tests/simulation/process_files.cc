#include "tests/simulation/process_files.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {

class ProcessFiles::OpenFile : public File {
 public:
  OpenFile(ProcessFiles* files, std::unique_ptr<File> file)
      : File(file->path()), files_(files), file_(std::move(file)) {}

  absl::StatusOr<uint64_t> Size() const override {
    if (!files_->process_->alive()) return absl::CancelledError("dead");
    return file_->Size();
  }
  absl::Status ReadAt(uint64_t offset, void* out, uint64_t size) const override {
    SHOAL_RETURN_IF_ERROR(files_->Begin("read", path()));
    return file_->ReadAt(offset, out, size);
  }
  absl::Status WriteAt(uint64_t offset, const void* data, uint64_t size) const override {
    SHOAL_RETURN_IF_ERROR(files_->BeginChange("write", path()));
    SHOAL_ASSIGN_OR_RETURN(const uint64_t there, file_->Size());
    if (!files_->condition_->full || offset + size <= there) {
      return file_->WriteAt(offset, data, size);
    }
    if (offset < there) {
      SHOAL_RETURN_IF_ERROR(file_->WriteAt(offset, data, there - offset));
    }
    return FileError(ENOSPC, "write", path());
  }
  absl::Status Allocate(uint64_t size) const override {
    SHOAL_RETURN_IF_ERROR(files_->BeginChange("allocate", path()));
    SHOAL_ASSIGN_OR_RETURN(const uint64_t there, file_->Size());
    if (files_->condition_->full && size > there) return FileError(ENOSPC, "reserve", path());
    return file_->Allocate(size);
  }
  absl::Status Sync() const override {
    SHOAL_RETURN_IF_ERROR(files_->Begin("sync", path()));
    return file_->Sync();
  }

 private:
  ProcessFiles* const files_;
  const std::unique_ptr<File> file_;
};

absl::Status ProcessFiles::Begin(const char* what, const std::string& path) {
  if (process_->world().tracing() && process_->alive()) {
    process_->world().Trace(process_->name(), absl::StrCat("  file ", what, " ", path));
  }
  if (process_->BeginFileOperation()) return absl::OkStatus();
  return absl::CancelledError(absl::StrCat("dead: ", what, " ", path));
}

absl::Status ProcessFiles::BeginChange(const char* what, const std::string& path) {
  SHOAL_RETURN_IF_ERROR(Begin(what, path));
  if (condition_->read_only) return FileError(EROFS, what, path);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<File>> ProcessFiles::Open(const std::string& path, Mode mode) {
  if (mode == Mode::kRead) {
    SHOAL_RETURN_IF_ERROR(Begin("open", path));
  } else {
    SHOAL_RETURN_IF_ERROR(BeginChange(mode == Mode::kCreate ? "create" : "open to write", path));
  }
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<File> file, disk_->Open(path, mode));
  return std::make_unique<OpenFile>(this, std::move(file));
}

bool ProcessFiles::Exists(const std::string& path) {
  return Begin("look for", path).ok() && disk_->Exists(path);
}

bool ProcessFiles::IsDirectory(const std::string& path) {
  return Begin("look for", path).ok() && disk_->IsDirectory(path);
}

absl::StatusOr<std::vector<FileSystem::Entry>> ProcessFiles::List(const std::string& directory) {
  SHOAL_RETURN_IF_ERROR(Begin("list", directory));
  return disk_->List(directory);
}

absl::Status ProcessFiles::MakeDirectory(const std::string& path) {
  SHOAL_RETURN_IF_ERROR(BeginChange("make directory", path));
  return disk_->MakeDirectory(path);
}

absl::Status ProcessFiles::Rename(const std::string& from, const std::string& to) {
  SHOAL_RETURN_IF_ERROR(BeginChange("rename to", to));
  return disk_->Rename(from, to);
}

absl::Status ProcessFiles::Exchange(const std::string& a, const std::string& b) {
  SHOAL_RETURN_IF_ERROR(BeginChange("exchange", b));
  return disk_->Exchange(a, b);
}

absl::Status ProcessFiles::RemoveFile(const std::string& path) {
  SHOAL_RETURN_IF_ERROR(BeginChange("remove", path));
  return disk_->RemoveFile(path);
}

// File by file, so that it can end in the middle, or somebody else can add something meanwhile.
absl::Status ProcessFiles::RemoveTree(const std::string& directory) {
  const absl::StatusOr<std::vector<Entry>> entries = List(directory);
  if (absl::IsNotFound(entries.status())) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(entries.status());
  for (const Entry& entry : *entries) {
    const std::string path = absl::StrCat(directory, "/", entry.name);
    const absl::Status removed = entry.is_directory ? RemoveTree(path) : RemoveFile(path);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  SHOAL_RETURN_IF_ERROR(BeginChange("remove directory", directory));
  const absl::StatusOr<std::vector<Entry>> left = disk_->List(directory);
  if (left.ok() && !left->empty()) return FileError(ENOTEMPTY, "remove", directory);
  return disk_->RemoveTree(directory);
}

absl::Status ProcessFiles::SyncDirectory(const std::string& directory) {
  SHOAL_RETURN_IF_ERROR(Begin("sync directory", directory));
  return disk_->SyncDirectory(directory);
}

}  // namespace shoal
