#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/rate_scale.h"
#include "common/rpc/message.h"
#include "common/sharding/shard_map.h"
#include "common/step_plan/round.h"
#include "ps/store/aligned_buffer.h"
#include "ps/store/chunk_snapshot.h"
#include "ps/store/chunk_updater.h"
#include "ps/store/cut_copies.h"
#include "ps/store/stored_chunk.h"
#include "ps/store/value_buffers.h"

namespace shoal {

struct PushResult {
  bool repeated = false;
  bool skipped = false;  // the step was skipped (PushSkip)
  uint64_t version = 0;
  uint64_t staleness = 0;
};

// The shards of one ps: values in one aligned slab, slots in others, the chunks that lie in them,
// and the cut in progress (rules 5 to 7 of the protocol; section 13 for rounds). FillFromSeed or
// FillFromCheckpoint fills it once. A chunk holds variables of one UpdateRule: chunks of moving
// averages have no slots, and frozen ones take no pushes either. No threads, sockets or clock:
// calls come one at a time. Snapshots may outlive the store.
class VariableStore {
 public:
  struct Options {
    std::vector<Variable> variables;
    ShardMap shard_map;
    int ps_index = 0;
    std::shared_ptr<const Optimizer> optimizer;
    RateScale rate_scale;  // scales the optimizer's learning rate
    // ReadAhead looks this many updates ahead.
    uint64_t look_ahead = 0;
    uint64_t window_steps = 4096;
    // Every push belongs to a round of at most this many steps. 0: there are no rounds, and each
    // push is applied at once.
    uint64_t max_round_steps = 0;
    uint64_t seed = 0;  // FillFromSeed draws the first values by it
  };
  // Throws std::bad_alloc when there is no memory for the shards.
  explicit VariableStore(Options options);
  VariableStore(const VariableStore&) = delete;
  VariableStore& operator=(const VariableStore&) = delete;

  const Options& options() const { return options_; }
  int chunk_count() const { return static_cast<int>(chunks_.size()); }
  int64_t chunk_size(int chunk) const { return shards().chunks[chunk].size; }  // floats

  // A run of rows of this ps in a checkpoint, and its place in the store. A new store has no values
  // until all runs are filled and SetApplied is called.
  struct RowRun {
    std::string tensor;  // VARIABLE or SLOT/VARIABLE
    Shape shape;         // of the whole tensor
    uint64_t offset_bytes = 0;
    uint64_t size_bytes = 0;
    float* out = nullptr;
    const Shard* shard = nullptr;  // of options().shard_map
    std::optional<int> slot;       // none: values
  };
  std::vector<RowRun> RowRuns();
  // Counts all steps below `base` as applied; `base` becomes the version of each chunk.
  void SetApplied(uint64_t base);

  // Rule 5. The payload of `message` is the gradient, or the sample of moving averages; it must
  // have the chunk's size. In a round the step is in from now on, and applied with the rest of its
  // round. kOutOfRange: the step is beyond the window, or its round comes after the chunk's:
  // earlier steps come first. kInvalidArgument: the chunk does not exist or is frozen, the size is
  // wrong, the chunk has not had the pulled version, the round does not begin with that version, or
  // the chunk is at another round. After an error nothing has changed.
  absl::StatusOr<PushResult> Push(const Message& message, uint64_t step, int chunk,
                                  uint64_t pulled_version,
                                  const std::optional<Round>& round = std::nullopt);
  // Push for a skipped step, which has no gradient. It counts as applied, and the version rises, so
  // the next update's number includes it. Values and slots stay unchanged.
  absl::StatusOr<PushResult> PushSkip(uint64_t step, int chunk, uint64_t pulled_version);
  // Returns the live values. kInvalidArgument: no such chunk.
  absl::StatusOr<ChunkSnapshot> Read(int chunk) const;
  // Returns the values expected Options::look_ahead updates later, by the optimizer's slots: for
  // workers whose push comes after that many others. Returns the live values if look_ahead is 0 or
  // the optimizer cannot extrapolate.
  absl::StatusOr<ChunkSnapshot> ReadAhead(int chunk);
  // Returns OK if ReadVersion has this version, otherwise its error.
  absl::Status CheckVersion(int chunk, uint64_t version) const;
  // Returns the values of this version: the live ones, or those of the version before. A frozen
  // chunk has only one version. kOutOfRange: the version is dropped, as its round is complete on
  // every chunk of every ps. kFailedPrecondition: the chunk is not at this version yet.
  // kInvalidArgument: no such chunk.
  absl::StatusOr<ChunkSnapshot> ReadVersion(int chunk, uint64_t version) const;
  // The cut in progress. Pushes update it.
  CutCopies& cut() { return cut_; }
  const CutCopies& cut() const { return cut_; }

  // Every chunk has applied, or received, all steps below base(), and those of AppliedAfterBase().
  // If all chunks are frozen, every step counts as applied, and base() is the largest uint64_t.
  uint64_t base() const;
  std::vector<uint64_t> AppliedAfterBase() const;
  struct Counters {
    uint64_t applied = 0;   // pushes, alone or with their round
    uint64_t repeated = 0;  // pushes dropped because they had been applied, or were in
    uint64_t skipped = 0;   // pushes of skipped steps that counted
    uint64_t staleness_sum = 0;
    uint64_t staleness_max = 0;
  };
  const Counters& counters() const { return counters_; }
  // The lowest and the highest number of steps that a chunk has applied, without frozen chunks.
  // Steps below a loaded cut count. Both are 0 if all chunks are frozen.
  struct UpdateRange {
    uint64_t lowest = 0;
    uint64_t highest = 0;
  };
  UpdateRange updates() const;

  // In rounds: number of gradients that wait for their turn, and of chunks that keep the version
  // before.
  size_t early_gradients() const;
  size_t versions_before() const;

  const StoredChunk& chunk(int index) const { return chunks_[index]; }
  const ValueBuffers& buffers() const { return *buffers_; }

 private:
  const PsShards& shards() const { return options_.shard_map.ps(options_.ps_index); }
  std::vector<StoredChunk> MakeChunks();
  absl::Status CheckChunk(int chunk) const;
  // Error unless the chunk accepts pushes.
  absl::Status CheckPushed(int chunk) const;
  // Takes a push for a chunk that accepts pushes, with a gradient of its size or none.
  absl::StatusOr<PushResult> Take(const ChunkPush& push, int chunk);
  ChunkSnapshot Snapshot(int chunk, const ValueBuffers::Hold& values, uint64_t version) const {
    return MakeSnapshot(buffers_, values, chunk_size(chunk), version);
  }

  const Options options_;
  const std::shared_ptr<ValueBuffers> buffers_;  // shared with snapshots
  std::vector<AlignedBuffer> slot_slabs_;        // laid out as the values
  std::vector<StoredChunk> chunks_;
  ChunkUpdater updater_;
  CutCopies cut_;
  Counters counters_;
};

}  // namespace shoal
