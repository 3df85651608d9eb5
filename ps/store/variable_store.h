#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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
#include "ps/store/applied_set.h"
#include "ps/store/round_sum.h"
#include "ps/store/value_buffers.h"

namespace shoal {

// The values of one chunk at one moment, for sending. `payload` stays unchanged while its owner is
// held, also when the chunk is updated meanwhile (rule 5: publish by swapping buffers).
struct ChunkSnapshot {
  uint64_t version = 0;
  std::vector<Slice> payload;
};

struct PushResult {
  bool repeated = false;
  bool skipped = false;  // the step was skipped (PushNothing)
  uint64_t version = 0;
  uint64_t staleness = 0;
};

// The shards of one ps: values in one aligned slab, slots in others, and per chunk version,
// iteration counter and applied set; and the cut in progress (rules 5 to 7 of the protocol; section
// 13 for rounds). FillFromSeed or FillFromCheckpoint fills it once. A chunk holds variables of
// one UpdateRule: chunks of moving averages have no slots, and frozen ones take no pushes either.
// No threads, sockets or clock: calls come one at a time. Snapshots may outlive the store.
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
    uint64_t seed = 0;
  };
  // Throws std::bad_alloc when there is no memory for the shards.
  explicit VariableStore(Options options);
  ~VariableStore();

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
  absl::StatusOr<PushResult> PushNothing(uint64_t step, int chunk, uint64_t pulled_version);
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
  // Returns the values of the cut, with exactly the steps below it applied. kFailedPrecondition:
  // there is no such cut, or it is not ready.
  absl::StatusOr<ChunkSnapshot> ReadCut(int chunk, uint64_t cut_step) const;

  // Rule 6: replaces an older cut. False: some chunk has applied a step >= cut_step, which
  // `highest_step` names, and an older cut goes on. A step that is in, not applied, is in no cut.
  bool StartCut(uint64_t cut_step, uint64_t* highest_step);
  std::optional<uint64_t> cut_step() const { return cut_step_; }
  // Rule 7: there is a cut, and every chunk has all steps below it.
  bool CutReady() const { return cut_step_.has_value() && chunks_before_cut_ == 0; }
  // A piece of a chunk of the ready cut, copied out for writing: tensor name (VARIABLE or
  // SLOT/VARIABLE), byte offset in that tensor, and values.
  struct CutPiece {
    std::string tensor;
    uint64_t offset_bytes = 0;
    std::vector<float> values;
  };
  std::vector<CutPiece> CopyCutChunk(int chunk) const;
  // Returns the values (part 0) or slot part - 1 of a chunk of the ready cut, as they lie in the
  // chunk; empty: there is no such part. Valid until the next call that changes the store.
  std::span<const float> CutPart(int chunk, int part) const;
  // Drops the slots of a chunk of the ready cut, and with `values` its values too. From now on they
  // are not copied and must not be read.
  void ReleaseCut(int chunk, bool values);
  // Drops the copies and forgets the cut.
  void EndCut();

  // Copies of chunks for the cut, and the floats of slots in them.
  size_t cut_copies() const;
  int64_t cut_slot_floats() const;

  // Every chunk has applied, or has in, all steps below base(), and those of AppliedAfterBase(). If
  // all chunks are frozen, every step counts as applied, and base() is the largest uint64_t.
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

  // Buffers besides the slab, for chunks that are updated while their values are sent or kept.
  size_t spare_buffers() const { return buffers_->spare_count(); }
  // In rounds: number of gradients that wait for their turn, and of chunks that keep the version
  // before.
  size_t early_gradients() const;
  size_t versions_before() const;

  // The live state of a chunk.
  uint64_t version(int chunk) const { return chunks_[chunk].live.version; }
  const AppliedSet& applied(int chunk) const { return chunks_[chunk].applied; }
  std::span<const float> values(int chunk) const {
    return {chunks_[chunk].live.values.data(), static_cast<size_t>(chunk_size(chunk))};
  }
  // Requires a chunk that the optimizer updates.
  std::span<const float> slot(int chunk, int slot) const {
    return {chunks_[chunk].live.slots[slot], static_cast<size_t>(chunk_size(chunk))};
  }

 private:
  // All that an update touches: a copy of it is a copy of the chunk.
  struct State {
    ValueBuffers::Hold values;
    std::vector<float*> slots;  // empty if the optimizer does not update the chunk
    uint64_t version = 0;       // steps so far
  };
  // A copy for the cut. It has applied the steps of `applied` below the cut.
  struct Copy {
    State state;
    AlignedBuffer slot_memory;
  };
  // Floats [begin, end) of a chunk that weight decay treats alike.
  struct DecayRun {
    size_t begin = 0;
    size_t end = 0;
    bool decays = true;
  };
  struct ChunkState {
    State live;
    AppliedSet applied;          // in rounds: the steps that are in
    std::unique_ptr<Copy> copy;  // rule 5a
    // Whether the cut in progress still needs this chunk's slots and values.
    bool cut_slots_needed = true;
    bool cut_values_needed = true;
    std::vector<DecayRun> decay_runs;
    std::unique_ptr<RoundSum> round;  // null without rounds
    // The values before the last round, until the first push of the next round: its worker had the
    // last round's values of every chunk. Empty: dropped.
    ValueBuffers::Hold values_before;
    uint64_t version_before = 0;

    // The first step that is not applied.
    uint64_t applied_below() const {
      return round != nullptr && round->under_way() ? live.version : applied.base();
    }
  };
  // The numbers of an update.
  struct UpdateNumbers {
    uint64_t version = 0;    // steps applied
    uint64_t iteration = 0;  // of the optimizer, from 1
    uint64_t staleness = 0;  // of the gradient, when it came
  };

  const PsShards& shards() const { return options_.shard_map.ps(options_.ps_index); }
  absl::Status CheckChunk(int chunk) const;
  // Error unless the chunk accepts pushes.
  absl::Status CheckPushed(int chunk) const;
  // Returns runs that cover all floats of the chunk. One run if the optimizer excludes no variable
  // from weight decay.
  std::vector<DecayRun> DecayRuns(const Chunk& chunk) const;
  absl::Status CheckRound(const std::optional<Round>& round, uint64_t step, int chunk,
                          uint64_t pulled_version) const;
  static UpdateNumbers NextOf(const State& state, uint64_t staleness) {
    return {state.version + 1, state.version + 1, staleness};
  }
  // Pushes a gradient of the chunk's size; null: a skipped step.
  absl::StatusOr<PushResult> Take(const Message* gradient, uint64_t step, int chunk,
                                  uint64_t pulled_version, const std::optional<Round>& round);
  void Apply(const Message* gradient, int chunk, UpdateNumbers numbers, State* state);
  // Applies the chunk's rule to the values of `state`, into `out`.
  void Optimize(const Message& gradient, int chunk, UpdateNumbers numbers, const State& state,
                float* out);
  void Average(const Message& sample, int chunk, const State& state, float* out) const;
  void CopyForCut(int chunk);
  const State& CutState(int chunk) const;
  ChunkSnapshot Snapshot(int chunk, const State& state) const {
    return Snapshot(chunk, state.values, state.version);
  }
  ChunkSnapshot Snapshot(int chunk, const ValueBuffers::Hold& values, uint64_t version) const;

  const Options options_;
  const std::shared_ptr<ValueBuffers> buffers_;  // shared with snapshots
  std::vector<AlignedBuffer> slot_slabs_;        // laid out as the values
  std::vector<ChunkState> chunks_;
  std::optional<uint64_t> cut_step_;
  int chunks_before_cut_ = 0;  // chunks that lack steps below the cut
  Counters counters_;
};

}  // namespace shoal
