#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/files/file_system.h"
#include "common/job/job.h"
#include "common/memory/memory_limit.h"
#include "ps/loading/chunk_coding.h"
#include "ps/store/variable_store.h"

namespace shoal {

// A Load, for one ps.
struct LoadRequest {
  int ps_index = 0;
  uint32_t ps_count = 0;
  std::string job;                 // resolved text
  std::string checkpoint;          // absolute directory; empty: from the seed
  uint32_t manifest_checksum = 0;  // CRC-32C of the text of its manifest
  MemoryLimit memory;              // of this machine
  int workers = 0;                 // workers that will connect
  FileSystem* files = RealFileSystem();
};

// The filled variables of one ps, and the fingerprints of their job and shard map.
struct LoadedVariables {
  std::unique_ptr<VariableStore> store;
  uint32_t job_fingerprint = 0;  // JobFingerprint of the Load's job
  uint32_t shard_map_fingerprint = 0;
  ChunkCoding coding;
  Job job;                       // without the text of its model
  uint64_t temporary_bytes = 0;  // temporary memory besides the store, without shared memory
};

struct LoadOutcome {
  absl::Status status;
  // The checkpoint, not the job, is at fault. It must not be tried again.
  bool checkpoint_is_bad = false;
  // With checkpoint_is_bad: it could not be read, and may be whole.
  bool checkpoint_unread = false;
  // This machine does not see the checkpoint: `variables` are there, but have no values yet.
  bool not_seen = false;
  LoadedVariables variables;  // when status is OK
};

// Builds and fills the store: rule 3, "verify the file completely, then replace everything". Reads
// files and may take long, so it runs off the loop. Uses no state of a ps.
// kFailedPrecondition: this machine lacks the memory; none is taken then.
LoadOutcome LoadVariables(const LoadRequest& request);

}  // namespace shoal
