#include "common/files/durable_file.h"

#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

constexpr int kDirectoryAttempts = 10000;
constexpr int kMaxReads = 10;
constexpr uint32_t kOutputMode = 0755;
constexpr uint32_t kRunMode = 0700;

absl::Status MakeWithAccess(const std::string& path, DirectoryAccess access, FileSystem* files) {
  return access == DirectoryAccess::kAsParent ? files->MakeDirectory(path)
                                              : files->MakeDirectoryWithMode(path, kOutputMode);
}

// Syncs the entry of a directory, or returns the error of making it, `made`. Another process may
// have made it meanwhile.
absl::Status SyncMade(const absl::Status& made, const std::string& directory, FileSystem* files) {
  if (made.ok()) return files->SyncDirectory(ParentDirectory(directory));
  if (files->IsDirectory(directory)) return absl::OkStatus();
  if (!files->Exists(directory)) return made;
  return absl::FailedPreconditionError(absl::StrCat(directory, " is a file, not a directory"));
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t limit_bytes,
                                          FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         files->Open(path, FileSystem::Mode::kRead));
  SHOAL_ASSIGN_OR_RETURN(uint64_t size, file->Size());
  for (int reads_left = kMaxReads;; --reads_left) {
    if (size > limit_bytes) {
      return absl::DataLossError(
          absl::StrCat(path, " has ", size, " bytes; at most ", limit_bytes, " are read"));
    }
    std::string content(size, '\0');
    const absl::Status read = file->ReadAt(0, content.data(), size);
    if (read.ok()) return content;
    const uint64_t size_before = size;
    SHOAL_ASSIGN_OR_RETURN(size, file->Size());
    if (size == size_before || reads_left == 1) return read;
  }
}

absl::Status WriteNewFile(const std::string& path, const std::string& content, FileSystem* files) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         files->Open(path, FileSystem::Mode::kCreate));
  SHOAL_RETURN_IF_ERROR(file->WriteAt(0, content.data(), content.size()));
  return file->Sync();
}

absl::Status ReplaceFile(const std::string& path, const std::string& content, FileSystem* files) {
  const std::string beside = absl::StrCat(path, ".tmp");
  const absl::Status removed = files->RemoveFile(beside);
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  SHOAL_RETURN_IF_ERROR(WriteNewFile(beside, content, files));
  SHOAL_RETURN_IF_ERROR(files->Rename(beside, path));
  return files->SyncDirectory(ParentDirectory(path));
}

absl::StatusOr<std::string> MakeNewDirectory(const std::string& path, FileSystem* files,
                                             DirectoryAccess access) {
  std::string name = path;
  for (int number = 2; number <= kDirectoryAttempts; ++number) {
    const absl::Status made = MakeWithAccess(name, access, files);
    if (made.ok()) return name;
    if (!absl::IsAlreadyExists(made)) return made;
    name = absl::StrCat(path, "-", number);
  }
  return absl::AlreadyExistsError(absl::StrCat("cannot create directory ", path, ": it and ",
                                               kDirectoryAttempts, " names after it exist"));
}

absl::Status MakeDirectories(const std::string& directory, FileSystem* files,
                             DirectoryAccess access) {
  if (files->IsDirectory(directory)) return absl::OkStatus();
  const std::string parent = ParentDirectory(directory);
  if (parent != directory) SHOAL_RETURN_IF_ERROR(MakeDirectories(parent, files, access));
  return SyncMade(MakeWithAccess(directory, access, files), directory, files);
}

absl::Status MakeRunDirectory(const std::string& directory, FileSystem* files) {
  if (files->IsDirectory(directory)) return absl::OkStatus();
  SHOAL_RETURN_IF_ERROR(
      MakeDirectories(ParentDirectory(directory), files, DirectoryAccess::kOutput));
  return SyncMade(files->MakeDirectoryWithMode(directory, kRunMode), directory, files);
}

std::string ParentDirectory(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

std::string AbsolutePath(const std::string& path) {
  std::error_code failed;
  std::filesystem::path absolute = std::filesystem::absolute(path, failed);
  if (failed) return path;
  absolute = absolute.lexically_normal();
  if (!absolute.has_filename() && absolute.has_relative_path()) absolute = absolute.parent_path();
  return absolute.string();
}

}  // namespace shoal
