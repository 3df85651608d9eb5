#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal::cuda {

// What a choice among ways of computing something holds for. None of them has a tab or an end of
// line.
struct PlanKey {
  std::string libraries;  // what computes it, with versions: "cuDNN 9.19.0"
  std::string gpu;        // what of a GPU decides what is fast
  std::string work;       // what is computed: shapes and types
  std::string demands;    // what was asked of how it is computed
  bool operator==(const PlanKey&) const = default;
};

// The choices that were found the fastest, in a file, so that a GPU is measured once. Several
// processes, of other GPUs and versions too, may share the file. It is replaced as a whole: each
// adds what it has found to what is there then. Of two that do so at one instant one does not see
// what the other adds, and that is there again when the other adds the next, or is measured by a
// later process. Not thread-safe.
//
//   file     = "shoal-plans-4\n" { entry } checksum "\n"      the oldest entry first
//   entry    = libraries "\t" gpu "\t" work "\t" demands "\t" choice "\n"
//   checksum = ChecksumText of all before it                  choice: as the key's libraries say it
//
// Nothing that is wrong with the file stops anyone: one that is not of this form to the last byte
// is as none, and the next choice is written in its place. It has at most kMostBytes; what is too
// much are the oldest entries.
class PlanCache {
 public:
  // Some thousand entries: ResNet-50 has about 170 for each size of batches.
  static constexpr size_t kMostBytes = 1 << 20;

  // Reads the file at `path`; there need be none yet. An empty path: nothing is kept in a file.
  explicit PlanCache(std::string path);

  // What is wrong with the file, for people; empty where nothing is.
  const std::string& warning() const { return warning_; }

  std::optional<std::string> Find(const PlanKey& key) const;
  // Keeps it for this process, and in the file, whose directory is made if it is not there. A
  // choice has no tab or end of line. An error, for people, where it cannot be written; then it is
  // not tried again.
  absl::Status Keep(const PlanKey& key, const std::string& choice);

  struct Entry {
    PlanKey key;
    std::string choice;
  };

 private:
  const std::string path_;
  bool writable_;
  std::string warning_;
  std::vector<Entry> entries_;  // what was there at the start, and then what this process has found
  std::vector<Entry> found_;    // by this process
};

// Where the file is by the rules of the XDG base directories, from the values of XDG_CACHE_HOME and
// HOME, each null where it is not set; empty where neither says.
std::string PlanCachePath(const char* cache_home, const char* home);

}  // namespace shoal::cuda
