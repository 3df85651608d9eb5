#include "worker/worker_memory.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "worker/input/batch_source.h"

namespace shoal {

absl::StatusOr<MemoryNeeds> WorkerMemoryOf(const Job& job, uint64_t training_examples,
                                           const DatasetMemory& data, int ps_count,
                                           ModelRunner* runner) {
  auto batch_size = static_cast<uint64_t>(job.batch_size);
  if (training_examples > 0) batch_size = std::min(batch_size, training_examples);
  SHOAL_ASSIGN_OR_RETURN(const ModelRunner::BatchMemory batch,
                         runner->MemoryOfBatch(static_cast<int64_t>(batch_size)));
  const bool evaluates = !job.test.empty();
  const auto batch_bytes = static_cast<uint64_t>(batch.data);
  return WorkerMemory({.parameter_bytes = runner->layout().size * sizeof(float),
                       .evaluates = evaluates,
                       .activation_bytes = static_cast<uint64_t>(batch.activations),
                       .batch_bytes = batch_bytes,
                       .batches_ahead = BatchSource::MostBatches(batch_bytes) * (evaluates ? 2 : 1),
                       .data_bytes = data.held,
                       .reading_bytes = data.at_times,
                       .chunk_bytes = static_cast<uint64_t>(job.strategy.chunk_bytes),
                       .ps_count = ps_count});
}

}  // namespace shoal
