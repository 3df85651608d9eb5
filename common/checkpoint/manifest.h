#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/term.h"
#include "common/files/file_system.h"

namespace shoal {

inline constexpr char kManifestName[] = "manifest.json";
inline constexpr char kJobName[] = "job.json";
inline constexpr char kModelName[] = "model.json";

// manifest.json, which makes a directory a checkpoint. It is written last, by rename, and ends with
// its own checksum. The grammar is in docs/formats.md and manifest.cc. Plain data.
struct Manifest {
  struct File {
    std::string name;
    uint64_t size_bytes = 0;
    uint32_t crc32c = 0;
  };
  // The sums over the steps of `epoch` in the checkpoint whose reports had arrived. A resumed epoch
  // continues from these, so its figures cover all its steps.
  struct EpochSums {
    uint64_t examples = 0;  // 0: unknown
    double loss = 0;
    std::vector<double> metrics;  // sums of the job's metrics
    double seconds = 0;           // since the epoch's first lease
  };
  static constexpr int kFormatVersion = 1;

  int format_version = kFormatVersion;
  std::string program_version;
  std::string job_name;
  uint32_t job_fingerprint = 0;
  uint64_t timeline = 0;
  uint64_t cut_step = 0;        // contains exactly the steps below it
  uint64_t total_steps = 0;     // of the job; 0: the examples were not counted yet
  uint64_t epoch = 0;           // of the last contained step, from 0
  uint64_t epoch_position = 0;  // examples of that epoch consumed
  EpochSums epoch_sums;
  // Sizes of the data, as counted by workers. 0 training examples: not counted yet.
  uint64_t training_examples = 0;
  uint64_t test_examples = 0;
  std::vector<std::string> slots;  // slot names of the optimizer: "adam_m", "adam_v"
  // The first tensor with a value that is not finite; empty if all values are finite.
  std::string not_finite;
  std::string shard_map;    // JSON text, for information; Parse() returns it without blanks
  std::vector<File> files;  // includes job.json and model.json

  bool finite() const { return not_finite.empty(); }
  // Whether it contains all examples of the epoch.
  bool epoch_done() const { return training_examples > 0 && epoch_position == training_examples; }
  // Whether it contains all steps of the job.
  bool finished() const { return total_steps > 0 && cut_step == total_steps; }
  std::string ToText() const;
  // Parses a manifest. `path` names the file in messages. Returns kDataLoss if it is damaged or cut
  // off, and kFailedPrecondition if a newer version of Shoal wrote it.
  static absl::StatusOr<Manifest> Parse(const std::string& text, const std::string& path);
  // Reads and parses the manifest in a checkpoint's directory. Returns kNotFound if there is none.
  static absl::StatusOr<Manifest> Read(const std::string& directory,
                                       FileSystem* files = RealFileSystem());
};

// A checkpoint on disk: a directory with a valid manifest.
struct StoredCheckpoint {
  std::string directory;  // absolute
  Manifest manifest;
  std::chrono::nanoseconds age{};  // from its commit to its listing (FileSystem::Age)
  // The size of all its files without the manifest.
  uint64_t size_bytes() const;
};

}  // namespace shoal
