#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/file_system.h"
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

// The values of one chunk as they were at one moment, for sending: `payload` stays unchanged while
// its owner is held, also when the chunk is updated meanwhile (rule 5: publish by swapping
// buffers).
struct ChunkSnapshot {
  uint64_t version = 0;
  std::vector<Slice> payload;
};

struct PushResult {
  bool repeated = false;
  bool skipped = false;  // a step that came to nothing
  uint64_t version = 0;
  uint64_t staleness = 0;
};

// The shards of one ps: values in one aligned slab, slots beside it, and per chunk version,
// iteration counter and applied set; and the cut in progress (rules 5 to 7 of the protocol; of
// rounds, section 13). Filled once, by InitializeFromSeed or LoadCheckpoint. A chunk holds
// variables of one UpdateRule: those of moving averages have no slots, those of frozen ones take no
// pushes either. No threads, sockets or clock: calls come one at a time. Snapshots may outlive the
// store.
class VariableStore {
 public:
  struct Options {
    std::vector<Variable> variables;
    ShardMap shard_map;
    int ps_index = 0;
    std::shared_ptr<const Optimizer> optimizer;
    RateScale rate_scale;  // of the optimizer's learning rate
    // ReadAhead looks so many updates ahead.
    uint64_t look_ahead = 0;
    uint64_t window_steps = 4096;
    // Every push is of a round, of so many steps at most; 0: none is, and what comes is applied.
    uint64_t most_round_steps = 0;
    uint64_t seed = 0;
  };
  // Throws std::bad_alloc when there is no memory for the shards.
  explicit VariableStore(Options options);
  ~VariableStore();

  const Options& options() const { return options_; }
  int chunk_count() const { return static_cast<int>(chunks_.size()); }
  int64_t chunk_size(int chunk) const { return shards().chunks[chunk].size; }  // floats

  // Rule 3: first values by the initializers; nothing applied.
  void InitializeFromSeed();
  // Where each run of rows that a checkpoint has of this ps belongs: VARIABLE or SLOT/VARIABLE. For
  // filling the store by other means than LoadCheckpoint; SetApplied comes last.
  struct RowRun {
    std::string tensor;
    Shape shape;  // of the whole tensor
    uint64_t offset_bytes = 0;
    uint64_t size_bytes = 0;
    float* out = nullptr;
  };
  std::vector<RowRun> RowRuns();
  // All steps below `base` are applied, which is also the version of each chunk.
  void SetApplied(uint64_t base);
  // Rule 3: values and slots of the checkpoint, verified completely; all steps below its cut
  // applied. After an error the store is not to be used. kFailedPrecondition: the checkpoint lacks
  // slots of this optimizer; others are CheckpointReader's.
  absl::Status LoadCheckpoint(const std::string& directory, FileSystem* files = RealFileSystem());

  // Rule 5. The payload of `message` is the gradient, or the sample of moving averages; its size
  // must be the chunk's. One of a round is in from now on, and applied with the rest of its round.
  // kOutOfRange: the step is beyond the window, or of a round after the one that the chunk is at:
  // earlier steps come first; kInvalidArgument: no such chunk or one that is frozen, wrong size, a
  // pulled version that the chunk has not had, or that the round does not begin with, another round
  // than that which the chunk is at. After an error nothing has changed.
  absl::StatusOr<PushResult> Push(const Message& message, uint64_t step, int chunk,
                                  uint64_t pulled_version,
                                  const std::optional<Round>& round = std::nullopt);
  // The same of a step that comes to nothing: it counts as applied, and the version rises, so that
  // it is in the number of the next update; values and slots stay as they are.
  absl::StatusOr<PushResult> PushNothing(uint64_t step, int chunk, uint64_t pulled_version);
  // The live values. kInvalidArgument: no such chunk.
  absl::StatusOr<ChunkSnapshot> Read(int chunk) const;
  // Where they are expected to be some updates later (Options::look_ahead), as far as the slots say
  // it: of what the optimizer updates; else, and with 0, the live ones. For workers that push when
  // so many others have.
  absl::StatusOr<ChunkSnapshot> ReadAhead(int chunk);
  // Whether ReadVersion has it.
  absl::Status CheckVersion(int chunk, uint64_t version) const;
  // The values of this version, where the chunk is not frozen: the live ones, or those of the
  // version before. kOutOfRange: it is kept no more, as its round is complete on every chunk of
  // every ps; kFailedPrecondition: it is not at this version yet; kInvalidArgument: no such chunk.
  absl::StatusOr<ChunkSnapshot> ReadVersion(int chunk, uint64_t version) const;
  // The values of the cut, exactly the steps below it applied. kFailedPrecondition: no such cut, or
  // it is not ready.
  absl::StatusOr<ChunkSnapshot> ReadCut(int chunk, uint64_t cut_step) const;

  // Rule 6. False: some chunk has applied a step >= cut_step (`highest_step` says which), and an
  // older cut goes on. Otherwise it is replaced. A step that is in and not applied is in no cut.
  bool StartCut(uint64_t cut_step, uint64_t* highest_step);
  std::optional<uint64_t> cut_step() const { return cut_step_; }
  // Rule 7: there is a cut, and every chunk has all steps below it.
  bool CutReady() const { return cut_step_.has_value() && chunks_before_cut_ == 0; }
  // One chunk of the ready cut, copied out for writing: each piece as tensor name (variable or
  // SLOT/VARIABLE), byte offset in that tensor, and values.
  struct CutPiece {
    std::string tensor;
    uint64_t offset_bytes = 0;
    std::vector<float> values;
  };
  std::vector<CutPiece> CopyCutChunk(int chunk) const;
  // Of one chunk of the ready cut: the values (part 0) or slot part - 1, as they lie in the chunk.
  // Empty when there is no such part. Valid until the next call that changes the store.
  std::span<const float> CutPart(int chunk, int part) const;
  // The slots of a chunk of the ready cut are not needed any more, and with `values` nor are its
  // values: their copies go, and none is made. Not to be read from then on.
  void LetGoOfCut(int chunk, bool values);
  // Drops the copies and forgets the cut.
  void EndCut();

  // Copies of chunks for the cut, and the floats of slots in them.
  size_t cut_copies() const;
  int64_t cut_slot_floats() const;

  // Steps applied, or in, on every chunk: all below base, and these after it. Where all is frozen,
  // every step counts as applied: base is the largest number there is.
  uint64_t base() const;
  std::vector<uint64_t> AppliedAfterBase() const;
  struct Counters {
    uint64_t applied = 0;   // pushes, alone or with their round
    uint64_t repeated = 0;  // pushes dropped because they had been applied, or were in
    uint64_t skipped = 0;   // pushes of nothing, which counted
    uint64_t staleness_sum = 0;
    uint64_t staleness_max = 0;
  };
  const Counters& counters() const { return counters_; }
  // Steps that the chunk with the fewest, and with the most, has applied, frozen ones left out;
  // those below a loaded cut count. 0 and 0 where all is frozen.
  struct UpdateRange {
    uint64_t lowest = 0;
    uint64_t highest = 0;
  };
  UpdateRange updates() const;

  // Buffers beside the slab: for chunks that are updated while their values are being sent or kept.
  size_t spare_buffers() const { return buffers_->spare_count(); }
  // Of rounds: gradients that are kept until their turn comes, and chunks of which the version
  // before is kept.
  size_t early_gradients() const;
  size_t versions_before() const;

  // What a chunk is now.
  uint64_t version(int chunk) const { return chunks_[chunk].live.version; }
  const AppliedSet& applied(int chunk) const { return chunks_[chunk].applied; }
  std::span<const float> values(int chunk) const {
    return {chunks_[chunk].live.values.data(), static_cast<size_t>(chunk_size(chunk))};
  }
  // None where the optimizer does not update the chunk.
  std::span<const float> slot(int chunk, int slot) const {
    return {chunks_[chunk].live.slots[slot], static_cast<size_t>(chunk_size(chunk))};
  }

 private:
  // Everything that an update touches: a copy of it is a copy of the chunk.
  struct State {
    ValueBuffers::Hold values;
    std::vector<float*> slots;  // none where the optimizer does not update it
    uint64_t version = 0;       // steps so far
  };
  // The applied set of a copy is what `applied` holds below the cut.
  struct Copy {
    State state;
    AlignedBuffer slot_memory;
  };
  // Floats [begin, end) of a chunk, which weight decay takes alike.
  struct DecayRun {
    size_t begin = 0;
    size_t end = 0;
    bool decays = true;
  };
  struct ChunkState {
    State live;
    AppliedSet applied;          // of a round: the steps that are in
    std::unique_ptr<Copy> copy;  // rule 5a
    // What is left of the cut in progress to be read.
    bool cut_slots_needed = true;
    bool cut_values_needed = true;
    std::vector<DecayRun> decay_runs;
    std::unique_ptr<RoundSum> round;  // null where pushes are of no round
    // The values before the last round, until the first push of the next one: whoever sent it had
    // this round's of every chunk. Empty: not kept.
    ValueBuffers::Hold values_before;
    uint64_t version_before = 0;

    // The first step that is not applied.
    uint64_t applied_below() const {
      return round != nullptr && round->under_way() ? live.version : applied.base();
    }
  };
  // What an update makes of a chunk.
  struct UpdateNumbers {
    uint64_t version = 0;    // steps applied
    uint64_t iteration = 0;  // of the optimizer, from 1
    uint64_t staleness = 0;  // of the gradient, when it came
  };

  const PsShards& shards() const { return options_.shard_map.ps(options_.ps_index); }
  absl::Status CheckChunk(int chunk) const;
  // That it is one that takes pushes.
  absl::Status CheckPushed(int chunk) const;
  // Of what the optimizer updates, end to end; one where it excludes none of the variables.
  std::vector<DecayRun> DecayRuns(const Chunk& chunk) const;
  absl::Status CheckRound(const std::optional<Round>& round, uint64_t step, int chunk,
                          uint64_t pulled_version) const;
  static UpdateNumbers NextOf(const State& state, uint64_t staleness) {
    return {state.version + 1, state.version + 1, staleness};
  }
  // Push, where the gradient is one of the chunk's size; null: nothing.
  absl::StatusOr<PushResult> Take(const Message* gradient, uint64_t step, int chunk,
                                  uint64_t pulled_version, const std::optional<Round>& round);
  void Apply(const Message* gradient, int chunk, UpdateNumbers numbers, State* state);
  // The rule of the chunk, from the values of `state` to `out`.
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
  int chunks_before_cut_ = 0;  // that lack steps below the cut
  Counters counters_;
};

}  // namespace shoal
