#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "common/rpc/message.h"
#include "common/sharding/shard_map.h"
#include "common/step_plan/round.h"
#include "ps/store/applied_set.h"
#include "ps/store/chunk_state.h"
#include "ps/store/round_sum.h"
#include "ps/store/value_buffers.h"

namespace shoal {

// A push of one step for one chunk. Refers to a gradient that somebody else owns.
struct ChunkPush {
  const Message* gradient = nullptr;  // of the chunk's size; null: the step is skipped
  uint64_t step = 0;
  uint64_t pulled_version = 0;
  std::optional<Round> round;  // none: in a job without rounds
};

// One chunk of a store: its live state, the steps that it has applied, and in rounds the gradients
// that are in (rule 5 of the protocol, and section 13). Decides what a push changes; the store
// applies it. Plain state; not thread-safe.
//
//   Check ── OK, and applied() lacks the step ──▶ Receive ──▶ the update, if one is due ──▶ MarkIn
class StoredChunk {
 public:
  struct Options {
    const Chunk* layout = nullptr;  // outlives this
    int index = 0;                  // of the chunk, for messages
    uint64_t window_steps = 4096;
    // Every push belongs to a round of at most this many steps. 0: there are no rounds.
    uint64_t max_round_steps = 0;
  };
  StoredChunk(const Options& options, ChunkState live);

  // Returns OK for a push that changes the chunk, and for one whose step applied() contains.
  // kOutOfRange: the step is beyond the window, or its round comes after the chunk's: earlier steps
  // come first. kInvalidArgument: the chunk has not had the pulled version, the round does not
  // begin with that version, or the chunk is at another round.
  absl::Status Check(const ChunkPush& push) const;
  // Takes a push for which Check was OK, and whose step applied() lacks. Returns the update that is
  // due now for live(): the pushed gradient, or in rounds the mean once all gradients are in. The
  // update is valid until the next call of Receive.
  std::optional<ChunkUpdate> Receive(const ChunkPush& push);
  // The step of the last push that was received is in: rule 5d.
  void MarkIn(uint64_t step) { applied_.Add(step); }
  // Counts all steps below `base` as applied; `base` becomes the version.
  void SetApplied(uint64_t base);

  const Chunk& layout() const { return *options_.layout; }
  size_t size() const { return layout().size; }  // floats
  ChunkState& live() { return live_; }
  const ChunkState& live() const { return live_; }
  uint64_t version() const { return live_.version; }
  std::span<const float> values() const { return {live_.values.data(), size()}; }
  // Requires a chunk that the optimizer updates.
  std::span<const float> slot(int slot) const { return {live_.slots[slot], size()}; }

  // The steps that are applied; in rounds those that are in.
  const AppliedSet& applied() const { return applied_; }
  // The first step that is not applied to the values.
  uint64_t applied_below() const { return in_round() ? live_.version : applied_.base(); }
  // Highest step that is applied to the values, plus one.
  uint64_t applied_end() const { return in_round() ? live_.version : applied_.end(); }

  // Returns OK if ValuesAt has this version. kOutOfRange: it is dropped, as its round is complete
  // on every chunk of every ps. kFailedPrecondition: the chunk is not at this version yet.
  absl::Status CheckVersion(uint64_t version) const;
  // Returns the values of a version for which CheckVersion is OK: the live ones, or those of the
  // version before. A frozen chunk has only one version.
  const ValueBuffers::Hold& ValuesAt(uint64_t version) const;

  // In rounds: number of gradients that wait for their turn.
  size_t early_gradients() const { return round_ == nullptr ? 0 : round_->early_count(); }
  // In rounds: whether the version before is kept.
  bool keeps_version_before() const { return !values_before_.empty(); }

 private:
  // Some gradients of a round are in, and others are missing.
  bool in_round() const { return round_ != nullptr && round_->in_progress(); }
  absl::Status CheckRound(const ChunkPush& push) const;

  Options options_;
  ChunkState live_;
  AppliedSet applied_;
  std::unique_ptr<RoundSum> round_;  // null without rounds
  // The values before the last round, until the first push of the next round: its worker had the
  // last round's values of every chunk. Empty: dropped.
  ValueBuffers::Hold values_before_;
  uint64_t version_before_ = 0;
};

}  // namespace shoal
