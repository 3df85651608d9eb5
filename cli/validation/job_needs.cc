#include "cli/validation/job_needs.h"

#include <memory>
#include <utility>

#include "cli/validation/task_memory.h"
#include "common/base/shape.h"
#include "common/base/status_macros.h"
#include "common/compression/chunk_payload.h"
#include "common/compression/codec.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"
#include "common/sharding/shard_map.h"
#include "worker/compute/registry/backends.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {
namespace {

constexpr int64_t kBytesPerValue = sizeof(float);

// Bytes of the shards of one ps, without the alignment between them.
JobNeeds::Ps NeedsOfPs(const PsShards& shards, const std::vector<Variable>& variables,
                       int64_t slots) {
  JobNeeds::Ps needs;
  needs.chunks = static_cast<int64_t>(shards.chunks.size());
  for (const Chunk& chunk : shards.chunks) {
    for (const ChunkPiece& piece : chunk.pieces) {
      needs.variable_bytes += piece.size * kBytesPerValue;
      if (variables[piece.variable].has_slots())
        needs.slot_bytes += piece.size * kBytesPerValue * slots;
    }
  }
  return needs;
}

// A ps answers every pushed chunk with its values: both directions have the same chunks.
JobNeeds::Traffic TrafficOf(const Codec* codec, const ShardMap& shard_map) {
  JobNeeds::Traffic traffic;
  if (codec != nullptr) traffic.codec = codec->config();
  for (int ps = 0; ps < shard_map.ps_count(); ++ps) {
    for (const Chunk& chunk : shard_map.ps(ps).chunks) {
      if (!chunk.pushed()) continue;
      traffic.bytes += PayloadBytes(CodecOf(codec, chunk), chunk);
      traffic.float32_bytes += PayloadBytes(nullptr, chunk);
    }
  }
  return traffic;
}

}  // namespace

absl::StatusOr<JobNeeds> NeedsOf(const ValidatedJob& validated, std::optional<uint64_t> examples,
                                 const DatasetMemory& data) {
  const Job& job = validated.job;
  const std::vector<Variable>& variables = validated.model.graph.variables();
  SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakePsOptimizer(job));
  const auto slots = static_cast<int64_t>(optimizer->slot_names().size());
  JobNeeds needs;
  for (const Variable& variable : variables) {
    (variable.rule == UpdateRule::kOptimizer ? needs.trainable_parameters
                                             : needs.other_parameters) +=
        ElementCount(variable.shape);
  }
  needs.variable_bytes = (needs.trainable_parameters + needs.other_parameters) * kBytesPerValue;
  needs.slot_bytes = needs.trainable_parameters * slots * kBytesPerValue;
  std::vector<std::string> addresses;
  TaskCounts counts;
  if (validated.cluster.has_value()) {
    addresses = validated.cluster->PsAddresses();
    counts = {.ps = static_cast<int>(addresses.size()),
              .workers = static_cast<int>(validated.cluster->workers.size())};
  }
  SHOAL_ASSIGN_OR_RETURN(const auto backend, CreateBackend(ModelRunner::Options().backend));
  needs.precision = DescribePrecision(*backend, validated.model.graph);
  SHOAL_ASSIGN_OR_RETURN(needs.memory, MemoryOfTasks(job, validated.model, counts, examples, data));
  SHOAL_ASSIGN_OR_RETURN(const ShardMap shard_map, ShardMapOf(job, variables, counts.ps));
  SHOAL_ASSIGN_OR_RETURN(const auto push, MakeCodec(job.compression.push, Direction::kPush));
  SHOAL_ASSIGN_OR_RETURN(const auto pull, MakeCodec(job.compression.pull, Direction::kPull));
  needs.push = TrafficOf(push.get(), shard_map);
  needs.pull = TrafficOf(pull.get(), shard_map);
  for (size_t i = 0; i < addresses.size(); ++i) {
    needs.ps.push_back(NeedsOfPs(shard_map.ps(static_cast<int>(i)), variables, slots));
    needs.ps.back().address = addresses[i];
  }
  needs.total_steps = job.steps;
  if (examples.has_value()) {
    const StepPlan plan = BatchPlanOf(job, *examples).steps();
    needs.examples = *examples;
    needs.steps_per_epoch = plan.steps_per_epoch();
    needs.total_steps = plan.total_steps();
  }
  return needs;
}

}  // namespace shoal
