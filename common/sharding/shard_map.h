#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/model_layout.h"
#include "common/model/variable.h"

namespace shoal {

// Limits for splitting variables and cutting chunks.
struct ShardingOptions {
  int64_t min_shard_bytes = 256 << 10;  // min size of a part of a split variable
  int64_t chunk_bytes = 1 << 20;
  // Whether each variable that the optimizer updates stays in one chunk, however large
  // (Optimizer::takes_whole_variables).
  bool whole_variables = false;
};

// Rows [row_begin, row_end) of one variable, held by one ps.
struct Shard {
  int variable = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t slab_offset = 0;  // floats; a shard is contiguous, even if chunks cut it
};

// A contiguous part of a variable in a chunk. All in floats.
struct ChunkPiece {
  int variable = 0;
  int64_t variable_offset = 0;  // from the variable's first element
  int64_t chunk_offset = 0;     // from the chunk's first element; pieces lie end to end
  int64_t size = 0;
};

// The unit of transfer, of applying updates and of the applied set.
struct Chunk {
  int64_t slab_offset = 0;                   // floats; a multiple of 16
  int64_t size = 0;                          // floats
  UpdateRule rule = UpdateRule::kOptimizer;  // of all its variables
  std::vector<ChunkPiece> pieces;

  bool pushed() const { return rule != UpdateRule::kFrozen; }
  bool has_slots() const { return rule == UpdateRule::kOptimizer; }
};

// The shards and chunks of one ps.
struct PsShards {
  std::vector<Shard> shards;
  std::vector<Chunk> chunks;
  int64_t slab_size = 0;  // floats, chunk alignment included
};

// Assigns rows to ps and to the chunks that they travel in. It is a pure function of the variables,
// the number of ps and the options, so that coordinator, workers and ps compute the same.
//
// - A variable is split along axis 0 into up to ps_count parts, no smaller than min_shard_bytes.
//   The sizes are as even as rows allow; the first parts are one row larger (as in TensorFlow's
//   MinSizePartitioner).
// - Parts are assigned in order of size, largest first, to the ps with the fewest bytes that does
//   not yet hold a part of the same variable.
// - Within a ps, shards of variables that the optimizer updates come first, then moving averages,
//   then frozen ones, each in model order.
// - Chunks hold variables of one rule. They are filled up to chunk_bytes with whole shards. A
//   larger shard begins a chunk and is cut at chunk_bytes; its last part shares its chunk with the
//   next shards.
// - With whole_variables, variables that the optimizer updates are never split or cut: one larger
//   than chunk_bytes is a chunk of its own.
// - Variables without elements are not placed.
//
// Immutable.
class ShardMap {
 public:
  ShardMap(const std::vector<Variable>& variables, int ps_count, const ShardingOptions& options);

  int ps_count() const { return static_cast<int>(ps_.size()); }
  const PsShards& ps(int index) const { return ps_[index]; }
  // The CRC-32C of ToText().
  uint32_t Fingerprint() const;
  // JSON for the manifest and for people: for each ps the shards, with names and rows.
  std::string ToText() const;

 private:
  std::vector<Variable> variables_;
  int64_t chunk_size_ = 0;  // floats
  bool whole_variables_ = false;
  std::vector<PsShards> ps_;
};

}  // namespace shoal
