#include "ps/loading/variable_loading.h"

#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_verification.h"
#include "common/checkpoint/manifest.h"
#include "common/job/job.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/log/logging.h"
#include "common/memory/memory_needs.h"
#include "common/model/keras_model.h"
#include "ps/store/store_loading.h"

namespace shoal {
namespace {

constexpr uint32_t kMaxPs = 65536;

absl::StatusOr<VariableStore::Options> StoreOptions(const LoadRequest& request, const Job& job) {
  if (request.ps_count <= static_cast<uint32_t>(request.ps_index) || request.ps_count > kMaxPs) {
    return absl::InvalidArgumentError(absl::StrCat("ps_count ", request.ps_count, ": must be from ",
                                                   request.ps_index + 1, " to ", kMaxPs,
                                                   ", as this is ps ", request.ps_index));
  }
  SHOAL_ASSIGN_OR_RETURN(const KerasModel model, ParseKerasModel(job.model_json));
  SHOAL_ASSIGN_OR_RETURN(auto optimizer, MakePsOptimizer(job));
  const std::vector<Variable>& variables = model.graph.variables();
  SHOAL_ASSIGN_OR_RETURN(ShardMap shard_map,
                         ShardMapOf(job, variables, static_cast<int>(request.ps_count)));
  return VariableStore::Options{.variables = VariablesOfPs(job, variables),
                                .shard_map = std::move(shard_map),
                                .ps_index = request.ps_index,
                                .optimizer = std::move(optimizer),
                                .rate_scale = RateScaleOf(job),
                                .look_ahead = job.strategy.look_ahead,
                                .window_steps = job.strategy.window_steps,
                                .max_round_steps = job.strategy.gradients_per_update,
                                .seed = job.seed};
}

constexpr char kAdvice[] = "Give this machine more memory, or the cluster more ps.";

// Returns the bytes that the ps may take temporarily, beyond its permanent memory. Error if the
// machine lacks the memory.
absl::StatusOr<uint64_t> CheckMemoryFor(const VariableStore::Options& options,
                                        const LoadRequest& request) {
  const MemoryNeeds needs =
      PsMemory(options.ps_index, options.shard_map.ps(options.ps_index),
               static_cast<int>(options.optimizer->slot_names().size()), options.window_steps,
               request.workers, options.max_round_steps);
  SHOAL_RETURN_IF_ERROR(CheckMemory(needs, request.memory, kAdvice));
  if (const std::string warning = MayRunShort(needs, request.memory); !warning.empty())
    LogWarning(warning);
  return needs.max_bytes() - needs.shared_bytes() - needs.held_bytes() + needs.program_bytes();
}

// Whether a path leads nowhere on this machine, or to a file that the user of this ps cannot read.
bool NotSeen(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsPermissionDenied(status);
}

// Returns whether this machine sees the coordinator's directory. The same path may lead elsewhere
// here, or nowhere. A damaged manifest is a fault of the checkpoint, so it counts as seen.
bool Sees(const LoadRequest& request) {
  const absl::StatusOr<Manifest> manifest = Manifest::Read(request.checkpoint, request.files);
  if (!manifest.ok()) return !NotSeen(manifest.status());
  const std::string text = manifest->ToText();
  return Crc32c(text) == request.manifest_checksum;
}

LoadOutcome Load(const LoadRequest& request) {
  const absl::StatusOr<Job> job = ParseResolvedJob(request.job, "the job of the Load");
  if (!job.ok()) return {.status = job.status(), .variables = {}};
  absl::StatusOr<VariableStore::Options> options = StoreOptions(request, *job);
  if (!options.ok()) return {.status = options.status(), .variables = {}};
  absl::StatusOr<ChunkCoding> coding = ChunkCoding::Of(job->compression);
  if (!coding.ok()) return {.status = coding.status(), .variables = {}};
  const absl::StatusOr<uint64_t> temporary_bytes = CheckMemoryFor(*options, request);
  if (!temporary_bytes.ok()) return {.status = temporary_bytes.status(), .variables = {}};

  LoadedVariables loaded;
  loaded.job_fingerprint = JobFingerprint(request.job);
  loaded.shard_map_fingerprint = options->shard_map.Fingerprint();
  loaded.coding = *std::move(coding);
  loaded.job = *job;
  loaded.job.model_json.clear();
  loaded.temporary_bytes = *temporary_bytes;
  loaded.store = std::make_unique<VariableStore>(*std::move(options));
  if (!request.checkpoint.empty() && !Sees(request)) {
    return {.status = absl::OkStatus(), .not_seen = true, .variables = std::move(loaded)};
  }
  if (request.checkpoint.empty()) {
    FillFromSeed(loaded.store.get());
  } else if (absl::Status read =
                 FillFromCheckpoint(request.checkpoint, request.files, loaded.store.get());
             !read.ok()) {
    // A checkpoint that does not suit this job or this Shoal may still be whole.
    return {.status = read,
            .checkpoint_is_bad = !absl::IsFailedPrecondition(read),
            .checkpoint_unread = !IsCheckpointDamage(read),
            .variables = {}};
  }
  return {.status = absl::OkStatus(), .variables = std::move(loaded)};
}

}  // namespace

LoadOutcome LoadVariables(const LoadRequest& request) {
  try {
    return Load(request);
  } catch (const std::bad_alloc&) {
    return {.status = OutOfMemory(absl::StrCat("the shards of ps ", request.ps_index)),
            .variables = {}};
  }
}

}  // namespace shoal
