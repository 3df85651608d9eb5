#pragma once

#include <string>
#include <vector>

#include "common/sharding/shard_map.h"
#include "proto/parameter_server.pb.h"
#include "tests/common/checkpoint/small_checkpoint.h"

namespace shoal {

// Splits the small checkpoint's variables into many chunks on two ps.
inline ShardMap SmallShardMap() {
  return ShardMap(SmallVariables(), 2, {.min_shard_bytes = 12, .chunk_bytes = 16});
}

// Returns the answer of a ps whose values are those of SmallValue.
inline proto::CutRows SmallCutRows(const ShardMap& shard_map, int ps, const proto::ReadCut& read) {
  const std::vector<Variable> variables = SmallVariables();
  const std::string prefix = read.part() == 0 ? "" : SmallSlots()[read.part() - 1] + "/";
  const Chunk& chunk = shard_map.ps(ps).chunks[read.chunk()];
  std::vector<float> values(chunk.size);
  for (const ChunkPiece& piece : chunk.pieces) {
    for (int64_t i = 0; i < piece.size; ++i) {
      values[piece.chunk_offset + i] = SmallValue(prefix + variables[piece.variable].name,
                                                  piece.variable_offset + i, read.cut_step());
    }
  }
  proto::CutRows rows;
  rows.set_cut_step(read.cut_step());
  rows.set_chunk(read.chunk());
  rows.set_part(read.part());
  rows.set_values(values.data(), values.size() * sizeof(float));
  return rows;
}

}  // namespace shoal
