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

// manifest.json: what makes a directory a checkpoint. Written last, by rename; ends with its own
// checksum (docs/formats.md and manifest.cc have the grammar). Plain data.
struct Manifest {
  struct File {
    std::string name;
    uint64_t size_bytes = 0;
    uint32_t crc32c = 0;
  };
  // What the steps of `epoch` that are in it have summed up to, as far as their reports had come:
  // with this an epoch that is gone on with has the figures of all its steps.
  struct EpochSums {
    uint64_t examples = 0;  // 0: nothing is known
    double loss = 0;
    std::vector<double> metrics;  // sums, as the job's metrics make them
    double seconds = 0;           // since the epoch's first lease
  };
  static constexpr int kFormatVersion = 1;

  int format_version = kFormatVersion;
  std::string program_version;
  std::string job_name;
  uint32_t job_fingerprint = 0;
  uint64_t timeline = 0;
  uint64_t cut_step = 0;        // all steps below it are in, no other
  uint64_t total_steps = 0;     // of the job; 0: nobody had counted the examples
  uint64_t epoch = 0;           // of the last step in it, from 0
  uint64_t epoch_position = 0;  // examples of that epoch consumed
  EpochSums epoch_sums;
  // Of the data, as its workers saw them; 0 training examples: nobody had counted.
  uint64_t training_examples = 0;
  uint64_t test_examples = 0;
  std::vector<std::string> slots;  // slot names of the optimizer: "adam_m", "adam_v"
  // The first tensor that holds a value which is not a finite number; empty: all values are finite.
  std::string not_finite;
  std::string shard_map;    // JSON text, for information; comes back without blanks
  std::vector<File> files;  // job.json and model.json among them

  bool finite() const { return not_finite.empty(); }
  // All examples of the epoch are in it.
  bool epoch_done() const { return training_examples > 0 && epoch_position == training_examples; }
  // All steps of the job are in it.
  bool finished() const { return total_steps > 0 && cut_step == total_steps; }
  std::string ToText() const;
  // `path` names the file in messages. kDataLoss: damaged or cut off; kFailedPrecondition: written
  // by a newer Shoal.
  static absl::StatusOr<Manifest> Parse(const std::string& text, const std::string& path);
  // Reads and parses the manifest of a checkpoint's directory; kNotFound when there is none.
  static absl::StatusOr<Manifest> Read(const std::string& directory,
                                       FileSystem* files = RealFileSystem());
};

// A checkpoint on disk: a directory with a manifest that parses.
struct StoredCheckpoint {
  std::string directory;  // absolute
  Manifest manifest;
  std::chrono::nanoseconds age{};  // since its commit, when it was listed (FileSystem::Age)
  // Of all its files, the manifest left out.
  uint64_t size_bytes() const;
};

}  // namespace shoal
