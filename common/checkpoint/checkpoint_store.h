#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/checkpoint_reader.h"  // IWYU pragma: export
#include "common/checkpoint/manifest.h"           // IWYU pragma: export

namespace shoal {

// The checkpoints of one run: RUN_DIR/checkpoints. Not thread-safe. A coordinator that was fenced
// off may write into the same directory at the same time. Therefore directories are created
// exclusively, and only a manifest makes a checkpoint.
class CheckpointStore {
 public:
  // The store creates `root` when needed. The file system must outlive this.
  explicit CheckpointStore(std::string root, FileSystem* files = RealFileSystem());

  FileSystem* files() const { return files_; }

  // Returns all directories with a valid manifest, newest first by (timeline, cut_step). Skips a
  // directory with a damaged manifest and describes it in `problems` (may be null). Returns none if
  // the root does not exist.
  absl::StatusOr<std::vector<StoredCheckpoint>> List(std::vector<std::string>* problems) const;
  // Returns the directories, by name, that look like checkpoints but have no manifest. They are
  // being written, or belong to a cancelled cut.
  absl::StatusOr<std::vector<std::string>> Unfinished() const;
  // Reads everything: sizes and checksums of every file, safetensors headers, job.json against the
  // fingerprint. The error names the file, the expected and the actual content. A verified
  // checkpoint is durable.
  absl::Status Verify(const StoredCheckpoint& checkpoint) const;
  // Returns the newest checkpoint that verifies and is finite. If there is none, returns the newest
  // that verifies. Skips the directories in `known_bad`, with the error of an earlier read, and
  // describes each skipped one in `problems`: as damaged only if it is (IsCheckpointDamage). Also
  // skips one that the disk fails to read (EIO): a bad sector stays bad, and a run that waited for
  // it would never continue. It stays on disk, for a later search. kFailedPrecondition: a newer
  // Shoal wrote one.
  absl::StatusOr<std::optional<StoredCheckpoint>> NewestVerified(
      const std::map<std::string, absl::Status>& known_bad,
      std::vector<std::string>* problems) const;

  // Makes an empty directory for a cut, exclusively: "step-000000000500-3-0badcafe" for the cut at
  // step 500 under that term. Appends "-2", "-3", ... if the name exists. Returns its absolute
  // path. A coordinator makes at most one cut at a step under a term, so no name comes twice.
  // Otherwise a ps that resumes after a pause would write a cancelled cut into the next one.
  absl::StatusOr<std::string> CreateDirectory(uint64_t cut_step, uint64_t term);
  // Verifies the `parts` of all ps against the files: each part's checksum, and that the parts
  // cover every tensor byte once. Checks whether all values are finite. Adds `texts` (job.json,
  // model.json: name -> content) and computes the files' checksums. Then commits the manifest:
  // writes it under another name, syncs, renames, syncs the directory.
  // kDataLoss: the disk differs from what the ps report. The directory is then no checkpoint; call
  // Discard().
  absl::StatusOr<StoredCheckpoint> Commit(const std::string& directory,
                                          const CheckpointLayout& layout,
                                          const std::vector<WrittenPart>& parts,
                                          const std::map<std::string, std::string>& texts,
                                          Manifest manifest);
  // Removes a directory without a manifest (a cancelled cut). Does nothing to a checkpoint.
  void Discard(const std::string& directory);
  // Keeps the newest `keep` checkpoints, at least two, that are finite and whole, and deletes older
  // ones. A checkpoint is whole if this object has committed or verified it; this verifies more
  // where needed. Also removes directories without a manifest that are older than the newest two.
  //
  // A checkpoint that is not finite stays only while it is the newest of all. A damaged one does
  // not count, and stays for people to examine until it is older than the kept ones. One with a
  // damaged manifest stays for good. The directories in `pinned` stay.
  //
  // Follows no symbolic link: a linked directory stays and does not count. If the root is a link,
  // all stay.
  absl::Status RemoveOld(int keep, const std::set<std::string>& pinned = {});
  // Returns the links that RemoveOld() has found since the last call; each only once.
  std::vector<std::string> TakeFoundLinks();

 private:
  // Returns whether it is a symbolic link, and records it for TakeFoundLinks() if so.
  bool NoteLink(const std::string& path);

  const std::string root_;
  FileSystem* const files_;
  mutable std::set<std::string> verified_;  // directories found whole, or committed, by this object
  std::set<std::string> unfinished_;  // directories created and neither committed nor discarded
  std::set<std::string> links_;       // found by RemoveOld()
  std::vector<std::string> new_links_;
};

}  // namespace shoal
