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

// The checkpoints of one run: RUN_DIR/checkpoints. Not thread-safe. Another process may write into
// the same directory at the same time (a coordinator that has been fenced off): directories are
// created exclusively, and only a manifest makes a checkpoint.
class CheckpointStore {
 public:
  // `root` is created when needed; the file system outlives this.
  explicit CheckpointStore(std::string root, FileSystem* files = RealFileSystem());

  // Absolute.
  FileSystem* files() const { return files_; }

  // All directories with a manifest that parses, newest first by (timeline, cut_step). A directory
  // whose manifest is damaged is skipped and described in `problems` (may be null). None when root
  // does not exist.
  absl::StatusOr<std::vector<StoredCheckpoint>> List(std::vector<std::string>* problems) const;
  // Directories like those of checkpoints, without a manifest, by name: what is being written, or
  // belongs to a cancelled cut.
  absl::StatusOr<std::vector<std::string>> Unfinished() const;
  // Reads everything: sizes and checksums of every file, safetensors headers, job.json against the
  // fingerprint. The error names the file, what was expected and what is there. A checkpoint that
  // was found whole stays, also when the machine dies.
  absl::Status Verify(const StoredCheckpoint& checkpoint) const;
  // Newest that verifies and is finite, or where there is none, newest that verifies; passes over
  // those in `known_bad` (directories), and describes each one passed over. kFailedPrecondition:
  // one was written by a newer Shoal.
  absl::StatusOr<std::optional<StoredCheckpoint>> NewestVerified(
      const std::set<std::string>& known_bad, std::vector<std::string>* problems) const;

  // Makes an empty directory for a cut, that no one else has: "step-000000000500-3-0badcafe" for
  // the cut at step 500 under that term, with "-2", "-3", ... appended when it is taken. Returns
  // its absolute path. A coordinator makes at most one cut at a step under a term, so that no name
  // comes twice: a ps that was stopped while it wrote a cut, and resumes after that was cancelled,
  // would write into the next one.
  absl::StatusOr<std::string> CreateDirectory(uint64_t cut_step, uint64_t term);
  // Verifies `parts` of all ps against what is in the files (each part's checksum; together they
  // cover every tensor byte once), looks whether all values are finite, adds `texts` (job.json,
  // model.json: name -> content), computes the files' checksums and commits the manifest: write
  // beside, sync, rename, sync the directory.
  // kDataLoss: what is on disk is not what the ps say; the directory is still no checkpoint, and
  // can only be discarded.
  absl::StatusOr<StoredCheckpoint> Commit(const std::string& directory,
                                          const CheckpointLayout& layout,
                                          const std::vector<WrittenPart>& parts,
                                          const std::map<std::string, std::string>& texts,
                                          Manifest manifest);
  // Removes a directory without a manifest (a cancelled cut). Does nothing to a checkpoint.
  void Discard(const std::string& directory);
  // Keeps the newest `keep` checkpoints that are finite and whole, two at least, and deletes older
  // ones: whole is what this object has committed or verified, which it does now where that
  // decides; also removes directories without manifest that are older than the newest two of those.
  // One that is not finite stays only while it is the newest of all. What is damaged counts for
  // nothing, and stays for people to look at: until it is older than what is kept or, where its
  // manifest is, for good. The directories in `pinned` stay, whatever came later.
  // Follows no symbolic link: a directory that is one stays and counts for nothing here, and where
  // the root is one, all stay.
  absl::Status RemoveOld(int keep, const std::set<std::string>& pinned = {});
  // The links that RemoveOld has come upon since the last call; each once in the life of this.
  std::vector<std::string> TakeFoundLinks();

 private:
  // Whether it is a symbolic link, which is then noted for TakeFoundLinks.
  bool NoteLink(const std::string& path);

  const std::string root_;
  FileSystem* const files_;
  mutable std::set<std::string> verified_;  // directories found whole, or committed, by this object
  std::set<std::string> unfinished_;  // directories created and neither committed nor discarded
  std::set<std::string> links_;       // that RemoveOld has come upon
  std::vector<std::string> new_links_;
};

}  // namespace shoal
