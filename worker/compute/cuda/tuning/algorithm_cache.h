#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace shoal::cuda {

// The conditions under which a choice among algorithms holds. No field contains a tab or a newline.
struct AlgorithmKey {
  std::string libraries;  // the libraries that compute it, with versions: "cuDNN 9.19.0"
  std::string gpu;        // the properties of the GPU that decide its speed
  std::string work;       // the computation: shapes and types
  std::string demands;    // the demands on how it is computed
  bool operator==(const AlgorithmKey&) const = default;
};

// The fastest choices found so far, kept in a file, so that each GPU is measured only once. Several
// processes, also with other GPUs and versions, may share the file. Writing replaces the whole
// file: a process adds its own findings to the current content. If two processes write at the same
// instant, one overwrites an addition of the other. The other process adds it again with its next
// choice, or a later process measures it again. Not thread-safe.
//
//   file     = "shoal-plans-4\n" { entry } checksum "\n"      the oldest entry first
//   entry    = libraries "\t" gpu "\t" work "\t" demands "\t" choice "\n"
//   checksum = ChecksumText of all before it                  choice: in the libraries' own terms
//
// A bad file stops nothing: a file that does not match this form to the last byte is ignored, and
// the next choice replaces it. It has at most kMaxBytes; the oldest entries are dropped to fit.
class AlgorithmCache {
 public:
  // A few thousand entries: ResNet-50 has about 170 for each batch size.
  static constexpr size_t kMaxBytes = 1 << 20;

  // Reads the file at `path`, which need not exist yet. With an empty path there is no file.
  explicit AlgorithmCache(std::string path);

  // A problem with the file, for people; empty if there is none.
  const std::string& warning() const { return warning_; }

  // Returns the kept choice for `key`, if any.
  std::optional<std::string> Find(const AlgorithmKey& key) const;
  // Keeps a choice for this process and in the file; creates the file's directory if necessary. A
  // choice must not contain a tab or a newline. Returns an error, for people, if writing fails;
  // later calls then do not write again.
  absl::Status Keep(const AlgorithmKey& key, const std::string& choice);

  struct Entry {
    AlgorithmKey key;
    std::string choice;
  };

 private:
  const std::string path_;
  bool writable_;
  std::string warning_;
  std::vector<Entry> entries_;  // those in the file at the start, then those found by this process
  std::vector<Entry> found_;    // by this process
};

// Returns the path of the file by the rules of the XDG base directories. The arguments are the
// values of XDG_CACHE_HOME and HOME, null if unset. Empty if both are unset.
std::string AlgorithmCachePath(const char* cache_home, const char* home);

}  // namespace shoal::cuda
