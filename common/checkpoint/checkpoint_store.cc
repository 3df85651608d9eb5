#include "common/checkpoint/checkpoint_store.h"

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_verification.h"
#include "common/checkpoint/cut_directory.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr char kDirectoryPrefix[] = "step-";
// At least this many verified checkpoints stay. The newest may still turn out damaged.
constexpr size_t kWholeKept = 2;

bool HasManifest(const std::string& directory, FileSystem* files) {
  return files->Exists(absl::StrCat(directory, "/", kManifestName));
}

// Returns the paths of the directories step-* below `root`; none if `root` does not exist.
absl::StatusOr<std::vector<std::string>> StepDirectories(const std::string& root,
                                                         FileSystem* files) {
  std::vector<std::string> directories;
  const absl::StatusOr<std::vector<FileSystem::Entry>> entries = files->List(root);
  if (absl::IsNotFound(entries.status())) return directories;
  SHOAL_RETURN_IF_ERROR(entries.status());
  for (const FileSystem::Entry& entry : *entries) {
    if (entry.is_directory && absl::StartsWith(entry.name, kDirectoryPrefix)) {
      directories.push_back(absl::StrCat(root, "/", entry.name));
    }
  }
  return directories;
}

// The step in a directory's name; none if CreateDirectory does not make such names.
std::optional<uint64_t> StepOfName(const std::string& directory) {
  std::string digits = fs::path(directory).filename().string().substr(sizeof(kDirectoryPrefix) - 1);
  digits = digits.substr(0, digits.find('-'));
  uint64_t step = 0;
  if (!absl::SimpleAtoi(digits, &step)) return std::nullopt;
  return step;
}

// The number of the term in a directory's name; 0 if CreateDirectory does not make such names.
uint64_t TermNumberOfName(const std::string& directory) {
  const std::vector<std::string> parts =
      absl::StrSplit(fs::path(directory).filename().string(), '-');
  uint64_t number = 0;
  return parts.size() > 2 && absl::SimpleAtoi(parts[2], &number) ? number : 0;
}

// Returns whether `a` is newer: by timeline, then by cut step, then by the term of the cut. A later
// term has a greater timeline, and two terms may cut one timeline at the same step.
bool Newer(const StoredCheckpoint& a, const StoredCheckpoint& b) {
  const uint64_t term_of_a = TermNumberOfName(a.directory);
  const uint64_t term_of_b = TermNumberOfName(b.directory);
  return std::tie(a.manifest.timeline, a.manifest.cut_step, term_of_a, a.directory) >
         std::tie(b.manifest.timeline, b.manifest.cut_step, term_of_b, b.directory);
}

// Describes the checkpoints of `all` with values that are not finite, if the run continues from
// `taken`.
void DescribeNotFinite(const std::vector<StoredCheckpoint>& all, const StoredCheckpoint& taken,
                       std::vector<std::string>* problems) {
  for (const StoredCheckpoint& each : all) {
    if (each.manifest.finite() || (each.directory != taken.directory && Newer(taken, each)))
      continue;
    problems->push_back(absl::StrCat(
        each.directory, " has values in \"", each.manifest.not_finite,
        "\" that are not finite numbers",
        each.directory == taken.directory ? "; no other checkpoint is better" : "; skipped"));
  }
}

std::string DescribeKnownBad(const std::string& directory, const absl::Status& error) {
  return absl::StrCat(directory,
                      IsCheckpointDamage(error)
                          ? " is damaged, as an earlier read found: "
                          : " may be whole, but an earlier read of it failed: ",
                      std::string(error.message()));
}

absl::Status RemoveDirectory(const std::string& directory, FileSystem* files) {
  // Removes the manifest first: a crash then leaves no checkpoint. Syncs even without a manifest,
  // because the process that removed it may have died before its sync.
  const absl::Status removed = files->RemoveFile(absl::StrCat(directory, "/", kManifestName));
  if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  SHOAL_RETURN_IF_ERROR(files->SyncDirectory(directory));
  return files->RemoveTree(directory);
}

// Checks all files of the ps and the index next to them; fills in their entries of the manifest.
absl::Status CheckLaidOutFiles(const std::string& directory, const CheckpointLayout& layout,
                               const std::vector<WrittenPart>& parts, FileSystem* file_system,
                               Manifest* manifest) {
  std::map<std::string, std::vector<WrittenPart>> parts_of_file;
  for (const CheckpointLayout::File& file : layout.files) parts_of_file[file.name];
  for (const WrittenPart& part : parts) {
    const auto found = parts_of_file.find(part.file);
    if (found == parts_of_file.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("a ps wrote \"", part.file, "\", which is not a file of the checkpoint"));
    }
    // Empty parts cover nothing, and would make the order of the parts ambiguous.
    if (part.size_bytes > 0) found->second.push_back(part);
  }
  for (const CheckpointLayout::File& file : layout.files) {
    SHOAL_ASSIGN_OR_RETURN(
        CheckedFile checked,
        CheckWrittenFile(directory, file, parts_of_file[file.name], file_system));
    manifest->files.push_back(std::move(checked.entry));
    if (manifest->finite()) manifest->not_finite = std::move(checked.not_finite);
  }
  const std::string index_path = absl::StrCat(directory, "/", kModelIndexName);
  const std::string index = ModelIndexText(layout);
  SHOAL_ASSIGN_OR_RETURN(const std::string index_there,
                         ReadSmallFile(index_path, index.size(), file_system));
  if (index_there != index) {
    return absl::DataLossError(absl::StrCat(index_path, " does not match the layout"));
  }
  manifest->files.push_back({kModelIndexName, index.size(), Crc32c(index)});
  return absl::OkStatus();
}

}  // namespace

CheckpointStore::CheckpointStore(std::string root, FileSystem* files)
    : root_(AbsolutePath(root)), files_(files) {}

absl::StatusOr<std::vector<StoredCheckpoint>> CheckpointStore::List(
    std::vector<std::string>* problems) const {
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> directories,
                         StepDirectories(root_, files_));
  std::vector<StoredCheckpoint> checkpoints;
  for (const std::string& directory : directories) {
    absl::StatusOr<Manifest> manifest = Manifest::Read(directory, files_);
    if (manifest.ok()) {
      checkpoints.push_back({directory, *std::move(manifest),
                             files_->Age(absl::StrCat(directory, "/", kManifestName))});
    } else if (!absl::IsNotFound(manifest.status()) && problems != nullptr) {
      problems->push_back(std::string(manifest.status().message()));
    }
  }
  std::sort(checkpoints.begin(), checkpoints.end(), Newer);
  return checkpoints;
}

absl::StatusOr<std::vector<std::string>> CheckpointStore::Unfinished() const {
  SHOAL_ASSIGN_OR_RETURN(std::vector<std::string> directories, StepDirectories(root_, files_));
  std::erase_if(directories, [this](const std::string& each) { return HasManifest(each, files_); });
  std::sort(directories.begin(), directories.end());
  return directories;
}

absl::Status CheckpointStore::Verify(const StoredCheckpoint& checkpoint) const {
  absl::Status status = VerifyCheckpoint(checkpoint, files_);
  // The process that committed it may have died before it synced the directory.
  if (status.ok()) status = files_->SyncDirectory(checkpoint.directory);
  if (status.ok()) {
    verified_.insert(checkpoint.directory);
  } else {
    verified_.erase(checkpoint.directory);
  }
  return status;
}

absl::StatusOr<std::optional<StoredCheckpoint>> CheckpointStore::NewestVerified(
    const std::map<std::string, absl::Status>& known_bad,
    std::vector<std::string>* problems) const {
  // Continuing from an older checkpoint would lose the work of a newer Shoal.
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> directories,
                         StepDirectories(root_, files_));
  for (const std::string& directory : directories) {
    const absl::Status manifest = Manifest::Read(directory, files_).status();
    if (absl::IsFailedPrecondition(manifest)) return manifest;
  }
  std::vector<std::string> unusable;
  SHOAL_ASSIGN_OR_RETURN(std::vector<StoredCheckpoint> checkpoints, List(&unusable));
  std::stable_partition(checkpoints.begin(), checkpoints.end(),
                        [](const StoredCheckpoint& each) { return each.manifest.finite(); });
  std::optional<StoredCheckpoint> newest;
  for (const StoredCheckpoint& checkpoint : checkpoints) {
    if (const auto bad = known_bad.find(checkpoint.directory); bad != known_bad.end()) {
      unusable.push_back(DescribeKnownBad(checkpoint.directory, bad->second));
      continue;
    }
    if (const absl::Status status = Verify(checkpoint); !status.ok()) {
      unusable.push_back(std::string(status.message()));
      continue;
    }
    newest = checkpoint;
    break;
  }
  if (problems == nullptr) return newest;
  for (const std::string& problem : unusable)
    problems->push_back(absl::StrCat(problem, newest.has_value() ? "; skipped" : ""));
  if (newest.has_value()) DescribeNotFinite(checkpoints, *newest, problems);
  return newest;
}

absl::StatusOr<std::string> CheckpointStore::CreateDirectory(uint64_t cut_step, uint64_t term) {
  SHOAL_RETURN_IF_ERROR(MakeRunDirectory(ParentDirectory(root_), files_));
  SHOAL_RETURN_IF_ERROR(MakeDirectories(root_, files_));
  SHOAL_ASSIGN_OR_RETURN(
      std::string directory,
      MakeNewDirectory(absl::StrCat(root_, "/", CutDirectoryName(cut_step, term)), files_));
  unfinished_.insert(directory);
  return directory;
}

absl::StatusOr<StoredCheckpoint> CheckpointStore::Commit(
    const std::string& directory, const CheckpointLayout& layout,
    const std::vector<WrittenPart>& parts, const std::map<std::string, std::string>& texts,
    Manifest manifest) {
  SHOAL_RETURN_IF_ERROR(CheckLaidOutFiles(directory, layout, parts, files_, &manifest));
  for (const auto& [name, content] : texts) {
    const uint32_t crc = Crc32c(content);
    if (name == kJobName && crc != manifest.job_fingerprint) {
      return absl::InvalidArgumentError(
          absl::StrCat("the job text has fingerprint ", ChecksumText(crc),
                       ", the manifest is of a job with ", ChecksumText(manifest.job_fingerprint)));
    }
    SHOAL_RETURN_IF_ERROR(WriteNewFile(absl::StrCat(directory, "/", name), content, files_));
    manifest.files.push_back({name, content.size(), crc});
  }

  const std::string path = absl::StrCat(directory, "/", kManifestName);
  const std::string beside = absl::StrCat(path, ".tmp");
  const std::string text = manifest.ToText();
  // A manifest that cannot be read back must not become a checkpoint.
  SHOAL_ASSIGN_OR_RETURN(manifest, Manifest::Parse(text, path));
  SHOAL_RETURN_IF_ERROR(WriteNewFile(beside, text, files_));
  SHOAL_RETURN_IF_ERROR(files_->SyncDirectory(directory));
  SHOAL_RETURN_IF_ERROR(files_->SyncDirectory(root_));
  SHOAL_RETURN_IF_ERROR(files_->Rename(beside, path));
  SHOAL_RETURN_IF_ERROR(files_->SyncDirectory(directory));
  unfinished_.erase(directory);
  verified_.insert(directory);
  return StoredCheckpoint{directory, std::move(manifest)};
}

void CheckpointStore::Discard(const std::string& directory) {
  unfinished_.erase(directory);
  if (HasManifest(directory, files_)) return;
  // A directory that cannot be removed now is still no checkpoint; RemoveOld retries.
  (void)files_->RemoveTree(directory);
}

std::vector<std::string> CheckpointStore::TakeFoundLinks() { return std::exchange(new_links_, {}); }

bool CheckpointStore::NoteLink(const std::string& path) {
  if (!files_->IsLink(path)) return false;
  if (links_.insert(path).second) new_links_.push_back(path);
  return true;
}

absl::Status CheckpointStore::RemoveOld(int keep, const std::set<std::string>& pinned) {
  if (NoteLink(root_)) return absl::OkStatus();
  SHOAL_ASSIGN_OR_RETURN(const std::vector<StoredCheckpoint> checkpoints, List(nullptr));
  std::vector<StoredCheckpoint> finite;
  for (const StoredCheckpoint& checkpoint : checkpoints) {
    if (NoteLink(checkpoint.directory)) continue;
    if (checkpoint.manifest.finite()) {
      finite.push_back(checkpoint);
    } else if (checkpoint.directory != checkpoints.front().directory) {
      SHOAL_RETURN_IF_ERROR(RemoveDirectory(checkpoint.directory, files_));
    }
  }
  SHOAL_ASSIGN_OR_RETURN(std::vector<std::string> orphans, StepDirectories(root_, files_));
  std::erase_if(orphans, [this](const std::string& directory) {
    return !StepOfName(directory).has_value() || unfinished_.count(directory) != 0 ||
           HasManifest(directory, files_) || NoteLink(directory);
  });
  const size_t kept = std::max<size_t>(std::max(keep, 0), kWholeKept);
  if (finite.size() <= kept && orphans.empty()) return absl::OkStatus();

  size_t older = 0;  // index of the first checkpoint older than the kept ones
  size_t whole = 0;  // verified ones before it
  uint64_t lowest_step = UINT64_MAX;
  for (; older < finite.size() && whole < kept; ++older) {
    // All others stay, whole or not.
    if (whole >= kWholeKept && finite.size() - older <= kept - whole) break;
    // A coordinator that takes over has verified at most one of these.
    if (verified_.count(finite[older].directory) == 0 && !Verify(finite[older]).ok()) continue;
    if (++whole <= kWholeKept) lowest_step = std::min(lowest_step, finite[older].manifest.cut_step);
  }
  if (whole < kWholeKept) return absl::OkStatus();
  for (size_t i = older; whole == kept && i < finite.size(); ++i) {
    if (pinned.contains(finite[i].directory)) continue;
    SHOAL_RETURN_IF_ERROR(RemoveDirectory(finite[i].directory, files_));
    verified_.erase(finite[i].directory);
  }
  for (const std::string& directory : orphans) {
    if (*StepOfName(directory) < lowest_step)
      SHOAL_RETURN_IF_ERROR(RemoveDirectory(directory, files_));
  }
  return absl::OkStatus();
}

}  // namespace shoal
