#include "cli/output_file.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

// Names that those who were killed may have left.
constexpr int kMostPartial = 1000;

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path,
                                                               bool replace, FileSystem* files) {
  std::unique_ptr<OutputFile> file(new OutputFile(AbsolutePath(path), replace, files));
  SHOAL_RETURN_IF_ERROR(file->CheckPlace());
  for (int i = 1;; ++i) {
    const std::string name =
        absl::StrCat(file->path_, i == 1 ? "" : absl::StrCat("-", i), ".partial");
    absl::StatusOr<std::unique_ptr<File>> partial = files->Open(name, FileSystem::Mode::kCreate);
    if (absl::IsAlreadyExists(partial.status()) && i < kMostPartial) continue;
    SHOAL_RETURN_IF_ERROR(partial.status());
    file->partial_ = *std::move(partial);
    return file;
  }
}

OutputFile::~OutputFile() {
  if (partial_ != nullptr) (void)files_->RemoveFile(partial_->path());
}

absl::Status OutputFile::Append(const std::string& bytes) {
  SHOAL_RETURN_IF_ERROR(partial_->WriteAt(size_, bytes.data(), bytes.size()));
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::Status OutputFile::Finish() {
  SHOAL_RETURN_IF_ERROR(partial_->Sync());
  SHOAL_RETURN_IF_ERROR(CheckPlace());
  SHOAL_RETURN_IF_ERROR(files_->Rename(partial_->path(), path_));
  partial_.reset();
  return files_->SyncDirectory(std::filesystem::path(path_).parent_path().string());
}

absl::Status OutputFile::CheckPlace() const {
  if (files_->IsDirectory(path_)) {
    return absl::FailedPreconditionError(path_ + " is a folder; name a file");
  }
  if (replace_ || !files_->Exists(path_)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      path_ + " is there already; name another file, or have it replaced by --overwrite");
}

}  // namespace shoal
