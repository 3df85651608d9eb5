#include "common/files/output_file.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"

namespace shoal {
absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path,
                                                               bool replace, FileSystem* files) {
  std::unique_ptr<OutputFile> file(new OutputFile(AbsolutePath(path), replace, files));
  SHOAL_RETURN_IF_ERROR(file->CheckPlace());
  SHOAL_RETURN_IF_ERROR(
      MakeDirectories(ParentDirectory(file->path_), files, DirectoryAccess::kOutput));
  SHOAL_ASSIGN_OR_RETURN(
      file->partial_directory_,
      MakeNewDirectory(absl::StrCat(file->path_, ".partial"), files, DirectoryAccess::kOutput));
  return file;
}

OutputFile::~OutputFile() {
  if (!partial_directory_.empty()) (void)files_->RemoveTree(partial_directory_);
}

absl::Status OutputFile::Append(const std::string& bytes) {
  if (appended_ == nullptr) {
    SHOAL_ASSIGN_OR_RETURN(appended_, files_->Open(partial(), FileSystem::Mode::kCreate));
  }
  SHOAL_RETURN_IF_ERROR(appended_->WriteAt(size_, bytes.data(), bytes.size()));
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::Status OutputFile::Finish() {
  if (appended_ != nullptr) SHOAL_RETURN_IF_ERROR(appended_->Sync());
  SHOAL_RETURN_IF_ERROR(CheckPlace());
  SHOAL_RETURN_IF_ERROR(files_->Rename(partial(), path_));
  (void)files_->RemoveTree(partial_directory_);
  partial_directory_.clear();
  return files_->SyncDirectory(ParentDirectory(path_));
}

absl::Status OutputFile::CheckPlace() const {
  if (files_->IsDirectory(path_))
    return absl::AlreadyExistsError(absl::StrCat(path_, " is a folder; name a file"));
  if (replace_ || !files_->Exists(path_)) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(path_, " already exists"));
}

}  // namespace shoal
