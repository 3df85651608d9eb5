#include "common/sharding/chunk_limits.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/format_bytes.h"

namespace shoal {
namespace {

constexpr int64_t kAppliedSetsAnyJobMayHave = 1 << 30;

// The smallest chunk_bytes, a multiple of 64, that gives at most `most` chunks.
int64_t ChunkBytesFor(int64_t variable_bytes, int64_t max_chunks) {
  return ((variable_bytes + max_chunks - 1) / max_chunks + 63) / 64 * 64;
}

absl::Status CheckWholeVariables(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    const int64_t bytes = ElementCount(variable.shape) * static_cast<int64_t>(sizeof(float));
    if (variable.rule != UpdateRule::kOptimizer || bytes <= kMaxChunkBytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "$.optimizer: needs each variable whole, in one message of at most ",
        FormatBytes(kMaxChunkBytes), ", and variable \"", variable.name, "\" of shape ",
        ShapeToString(variable.shape), " has ", FormatBytes(bytes),
        "; AdamW, with a warm-up of the learning rate, takes variables of any size, or set "
        "\"trainable\": false in the layer"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckChunks(const std::vector<Variable>& variables, const ShardingOptions& options,
                         uint64_t window_steps) {
  if (options.whole_variables) SHOAL_RETURN_IF_ERROR(CheckWholeVariables(variables));
  int64_t variable_bytes = 0;
  for (const Variable& variable : variables) {
    variable_bytes += ElementCount(variable.shape) * static_cast<int64_t>(sizeof(float));
  }
  const int64_t chunks = (variable_bytes + options.chunk_bytes - 1) / options.chunk_bytes;
  if (chunks > kMaxChunks) {
    const int64_t right = ChunkBytesFor(variable_bytes, kMaxChunks);
    return absl::InvalidArgumentError(absl::StrCat(
        "$.strategy.chunk_bytes: is ", options.chunk_bytes, ", which cuts the ",
        FormatBytes(variable_bytes), " of variables into ", chunks, " chunks; at most ", kMaxChunks,
        " are possible, ",
        right <= kMaxChunkBytes ? absl::StrCat("so it must be at least ", right)
                                : "which no chunk_bytes can reach: the model is too large"));
  }
  const int64_t applied_bytes = AppliedSetBytes(window_steps);
  const int64_t max_applied_bytes = std::max(kAppliedSetsAnyJobMayHave, variable_bytes);
  if (chunks <= max_applied_bytes / applied_bytes) return absl::OkStatus();
  const int64_t right = ChunkBytesFor(variable_bytes, max_applied_bytes / applied_bytes);
  return absl::InvalidArgumentError(absl::StrCat(
      "$.strategy.window_steps: is ", window_steps, ", for which the ps keep ",
      FormatBytes(applied_bytes), " for each of ", chunks, " chunks, ",
      FormatBytes(static_cast<uint64_t>(chunks) * applied_bytes), " in all, for ",
      FormatBytes(variable_bytes), " of variables; it must be at most ",
      max_applied_bytes / chunks / 8 * 64,
      right <= kMaxChunkBytes ? absl::StrCat(", or $.strategy.chunk_bytes at least ", right) : ""));
}

}  // namespace shoal
