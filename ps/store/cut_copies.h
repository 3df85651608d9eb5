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
#include "common/step_plan/round.h"
#include "ps/store/aligned_buffer.h"
#include "ps/store/chunk_snapshot.h"
#include "ps/store/chunk_state.h"
#include "ps/store/stored_chunk.h"
#include "ps/store/value_buffers.h"

namespace shoal {

// The cut in progress of a store, and the copies of chunks for it: rules 5a, 5c, 6 and 7 of the
// protocol. A cut holds exactly the steps below its step. A chunk without a copy is in the cut
// with its live state. Not thread-safe; no call waits.
//
//   none ──Start──▶ waiting ──every chunk has all steps below──▶ ready ──End──▶ none
//                     └──────────── Start, with another step, begins again ───────┘
class CutCopies {
 public:
  struct Options {
    const std::vector<StoredChunk>* chunks = nullptr;  // these three outlive this
    const std::vector<Variable>* variables = nullptr;  // of the job
    const std::vector<std::string>* slot_names = nullptr;
    std::shared_ptr<const ValueBuffers> buffers;  // of the chunks' values
  };
  explicit CutCopies(Options options);

  // Rule 6: replaces an older cut. Returns the highest step that a chunk has applied if it is
  // `step` or later: no cut starts then, and an older one goes on. nullopt: the cut has started. A
  // step that is in, not applied, is in no cut.
  [[nodiscard]] std::optional<uint64_t> Start(uint64_t step);
  // Drops the copies and forgets the cut.
  void End();
  std::optional<uint64_t> step() const { return step_; }
  // Rule 7: there is a cut, and every chunk has all steps below it.
  bool Ready() const { return step_.has_value() && chunks_behind_ == 0; }

  // Returns the values of a chunk in the cut at `step`. kFailedPrecondition: there is no such cut,
  // it is not ready, or its values are dropped. kInvalidArgument: no such chunk.
  absl::StatusOr<ChunkSnapshot> Read(int chunk, uint64_t step) const;
  // A piece of a chunk of the ready cut, copied out for writing: tensor name (VARIABLE or
  // SLOT/VARIABLE), byte offset in that tensor, and values.
  struct Piece {
    std::string tensor;
    uint64_t offset_bytes = 0;
    std::vector<float> values;
  };
  std::vector<Piece> CopyPieces(int chunk) const;
  // Returns the values (part 0) or slot part - 1 of a chunk of the ready cut, as they lie in the
  // chunk; empty: there is no such part. Valid until the next call that changes the store.
  std::span<const float> Part(int chunk, int part) const;
  // Drops the slots of a chunk of the ready cut; DropChunk drops its values too. From now on they
  // are not copied and must not be read.
  void DropSlots(int chunk);
  void DropChunk(int chunk);
  // Returns the copy of a chunk; null: it needs none so far.
  const ChunkState* copy(int chunk) const {
    return entries_[chunk].copy ? &entries_[chunk].copy->state : nullptr;
  }

  // The store calls these for each push, in this order. They cost nothing without a cut.

  // kInvalidArgument: the cut lies within the round, so no chunk is ever at its step.
  absl::Status CheckRound(const Round& round, uint64_t step, int chunk) const;
  // Rule 5a: an update of `step` is about to change the live chunk.
  void BeforeUpdate(int chunk, uint64_t step) {
    if (step_ && step >= *step_ && !entries_[chunk].copy && entries_[chunk].values_needed)
      Copy(chunk);
  }
  // Rule 5c: returns the copy to which the update of `step` is applied too; null: none.
  ChunkState* CopyToUpdate(int chunk, uint64_t step) {
    return step_ && step < *step_ && entries_[chunk].copy ? &entries_[chunk].copy->state : nullptr;
  }
  // Rule 7: a chunk had applied the steps below `before`, and now has those below `now`.
  void OnApplied(uint64_t before, uint64_t now) {
    if (step_ && before < *step_ && now >= *step_) --chunks_behind_;
  }

 private:
  // A copy for the cut. It has applied the chunk's steps below the cut.
  struct ChunkCopy {
    ChunkState state;
    AlignedBuffer slot_memory;
  };
  // The copy of one chunk, and the parts of it that the cut still needs.
  struct Entry {
    std::unique_ptr<ChunkCopy> copy;
    bool slots_needed = true;
    bool values_needed = true;
  };

  void Copy(int chunk);
  const ChunkState& StateOf(int chunk) const {
    return entries_[chunk].copy ? entries_[chunk].copy->state : (*options_.chunks)[chunk].live();
  }

  const Options options_;
  std::optional<uint64_t> step_;
  int chunks_behind_ = 0;       // chunks that lack steps below the cut
  std::vector<Entry> entries_;  // by chunk
};

}  // namespace shoal
