#include "worker/step/worker_memory.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/compression/chunk_payload.h"
#include "worker/input/batches/batch_source.h"
#include "worker/step/inner_optimizer.h"

namespace shoal {
namespace {

// The size of the largest chunk in floats.
uint64_t LargestChunk(const ShardMap& shard_map) {
  int64_t largest = 0;
  for (int ps = 0; ps < shard_map.ps_count(); ++ps) {
    for (const Chunk& chunk : shard_map.ps(ps).chunks) largest = std::max(largest, chunk.size);
  }
  return static_cast<uint64_t>(largest);
}

// The max memory of GradientEncoder.
absl::StatusOr<uint64_t> CompressionBytes(const Job& job, const ShardMap& shard_map,
                                          uint64_t parameter_bytes) {
  SHOAL_ASSIGN_OR_RETURN(const auto codec, MakeCodec(job.compression.push, Direction::kPush));
  if (codec == nullptr) return 0;
  uint64_t bytes = codec->leaves_residual() ? parameter_bytes : 0;
  for (int ps = 0; ps < shard_map.ps_count(); ++ps) {
    for (const Chunk& chunk : shard_map.ps(ps).chunks) {
      if (CodecOf(codec.get(), chunk) != nullptr) bytes += PayloadBytes(codec.get(), chunk);
    }
  }
  return bytes;
}

absl::StatusOr<uint64_t> InnerBytes(const Job& job, const ModelLayout& layout) {
  if (!job.strategy.local()) return 0;
  SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakeOptimizer(job.optimizer));
  // The second term is for the gradients, next to the differences that are being exchanged.
  const bool by_chunks = job.strategy.fragments > 1;
  return InnerOptimizer::BytesOf(*optimizer, layout, by_chunks) +
         (by_chunks ? layout.size * sizeof(float) : 0);
}

}  // namespace

absl::StatusOr<MemoryNeeds> WorkerMemoryOf(const Job& job, uint64_t training_examples,
                                           const DatasetMemory& data, const ShardMap& shard_map,
                                           ModelRunner* runner) {
  auto batch_size = static_cast<uint64_t>(job.batch_size);
  if (training_examples > 0) batch_size = std::min(batch_size, training_examples);
  // Prepare the runner for an epoch's last batch now, so that its step does not wait. The larger
  // batch comes last, because its memory is the result.
  if (const uint64_t last = training_examples % batch_size; last > 0)
    SHOAL_RETURN_IF_ERROR(runner->MemoryOfBatch(static_cast<int64_t>(last)).status());
  SHOAL_ASSIGN_OR_RETURN(const ModelRunner::BatchMemory batch,
                         runner->MemoryOfBatch(static_cast<int64_t>(batch_size)));
  const bool evaluates = !job.test.empty();
  const auto batch_bytes = static_cast<uint64_t>(batch.data);
  const uint64_t parameter_bytes = runner->layout().size * sizeof(float);
  SHOAL_ASSIGN_OR_RETURN(const uint64_t compression_bytes,
                         CompressionBytes(job, shard_map, parameter_bytes));
  SHOAL_ASSIGN_OR_RETURN(const uint64_t inner_bytes, InnerBytes(job, runner->layout()));
  return WorkerMemory({.parameter_bytes = parameter_bytes,
                       .evaluates = evaluates,
                       .compression_bytes = compression_bytes,
                       .inner_bytes = inner_bytes,
                       .momentum_bytes = job.strategy.worker_momentum > 0 ? parameter_bytes : 0,
                       .activation_bytes = static_cast<uint64_t>(batch.activations),
                       .batch_bytes = batch_bytes,
                       .batches_ahead = BatchSource::MaxBatches(batch_bytes) * (evaluates ? 2 : 1),
                       .data_bytes = data.held,
                       .reading_bytes = data.temporary,
                       .chunk_bytes = LargestChunk(shard_map) * sizeof(float),
                       .ps_count = shard_map.ps_count()});
}

}  // namespace shoal
