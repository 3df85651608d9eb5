#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/model_layout.h"
#include "common/model/variable.h"

namespace shoal {

struct ShardingOptions {
  int64_t min_shard_bytes = 256 << 10;  // a variable is split only into parts at least this large
  int64_t chunk_bytes = 1 << 20;
  // Whether each variable that the optimizer updates lies in one chunk, however large that gets
  // (Optimizer::takes_whole_variables).
  bool whole_variables = false;
};

// Rows [row_begin, row_end) of one variable, that one ps holds.
struct Shard {
  int variable = 0;
  int64_t row_begin = 0;
  int64_t row_end = 0;
  int64_t slab_offset = 0;  // floats; a shard lies in one piece, also when chunks cut it
};

// A run of a variable inside a chunk. All in floats.
struct ChunkPiece {
  int variable = 0;
  int64_t variable_offset = 0;  // from the variable's first element
  int64_t chunk_offset = 0;     // from the chunk's first element; pieces lie end to end
  int64_t size = 0;
};

// The unit of transfer, of apply and of the applied set.
struct Chunk {
  int64_t slab_offset = 0;                   // floats; a multiple of 16
  int64_t size = 0;                          // floats
  UpdateRule rule = UpdateRule::kOptimizer;  // of all its variables
  std::vector<ChunkPiece> pieces;

  bool pushed() const { return rule != UpdateRule::kFrozen; }
  bool has_slots() const { return rule == UpdateRule::kOptimizer; }
};

struct PsShards {
  std::vector<Shard> shards;
  std::vector<Chunk> chunks;
  int64_t slab_size = 0;  // floats, chunk alignment included
};

// Which ps holds which rows, and in which chunks they travel: a pure function of the variables, the
// number of ps and the options, so that coordinator, workers and ps compute the same. A variable is
// split along axis 0 into up to ps_count parts, no smaller than min_shard_bytes, sizes as even as
// rows allow, first parts one row larger (as TensorFlow's MinSizePartitioner); parts go, largest
// first, to the ps with the fewest bytes that holds none of the same variable yet. Within a ps, the
// shards of variables that the optimizer updates lie first, then moving averages, then frozen ones,
// each in model order. Chunks hold variables of one rule. They are filled up to chunk_bytes with
// whole shards; a larger shard begins a chunk and is cut at chunk_bytes, and its last part shares
// its chunk with what follows. With whole_variables neither of what the optimizer updates: a
// variable that is larger than chunk_bytes is a chunk. Variables without elements lie nowhere.
// Immutable.
class ShardMap {
 public:
  ShardMap(const std::vector<Variable>& variables, int ps_count, const ShardingOptions& options);

  int ps_count() const { return static_cast<int>(ps_.size()); }
  const PsShards& ps(int index) const { return ps_[index]; }
  // CRC-32C of ToText().
  uint32_t Fingerprint() const;
  // JSON, for the manifest and for people: per ps the shards with names and rows.
  std::string ToText() const;

 private:
  std::vector<Variable> variables_;
  int64_t chunk_size_ = 0;  // floats
  bool whole_variables_ = false;
  std::vector<PsShards> ps_;
};

}  // namespace shoal
