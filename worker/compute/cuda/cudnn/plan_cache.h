#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "worker/compute/cuda/cudnn/engine_config.h"

namespace shoal::cuda {

// What a choice of an engine holds for. None of them has a tab or an end of line.
struct PlanKey {
  std::string cudnn;    // its version: "9.19.0"
  std::string gpu;      // "NVIDIA H100 80GB HBM3 9.0 132": its name, capability and processors
  std::string graph;    // GraphText
  std::string demands;  // DemandsText
  auto operator<=>(const PlanKey&) const = default;
};

// The engines that were found best, in a file, so that a GPU is measured once. Several processes,
// of other GPUs and versions of cuDNN too, may share the file: each appends what it finds, a line
// by one write to the file's end, and reads it at its start alone. Of two entries with one key the
// later counts. Not thread-safe.
//
//   file  = { line }
//   line  = "\n" checksum "\t" entry "\n"      an empty line is nothing
//   entry = "shoal-plan-1" "\t" cudnn "\t" gpu "\t" graph "\t" demands "\t" config
//   checksum: ChecksumText of entry            config: EngineConfigText
//
// Nothing that is wrong with the file stops anyone: a line whose checksum or form is wrong, as one
// of a process that was killed while it wrote, is passed over.
class PlanCache {
 public:
  // Reads the file at `path`; there need be none yet. An empty path: nothing is kept.
  explicit PlanCache(std::string path);

  // What is wrong with the file, for people; empty where nothing is.
  const std::string& warning() const { return warning_; }

  std::optional<EngineConfig> Find(const PlanKey& key) const;
  // Keeps it for this process, and in the file. An error, for people, where the file cannot be
  // written; then it is not tried again.
  absl::Status Keep(const PlanKey& key, const EngineConfig& config);

 private:
  void Read();

  const std::string path_;
  bool writable_;
  std::string warning_;
  std::map<PlanKey, EngineConfig> configs_;
};

}  // namespace shoal::cuda
