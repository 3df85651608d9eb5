#include "common/job/strategy_reader.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"
#include "common/sharding/chunk_limits.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr IntegerRange kMinShardBytes = {1, int64_t{1} << 40};
constexpr IntegerRange kChunkBytes = {64, kMostChunkBytes};
constexpr int64_t kChunkAlignmentBytes = 64;  // chunks begin on cache lines
constexpr IntegerRange kWindowSteps = {1, 1 << 20};
constexpr NumberRange kLeaseTimeoutSeconds = {.min = 0.1, .max = 86400};
constexpr IntegerRange kMaxStaleness = {0, 1 << 20};
constexpr NumberRange kSpeculateAfter = {.min = 1, .max = 1000};

void ReadName(const json& value, const std::string& path, JsonErrors* errors) {
  if (value == "async") return;
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  errors->Add(path, absl::StrCat("is ", ShortJson(value), ", a strategy that Shoal lacks",
                                 SuggestName(name, {"async"})));
}

}  // namespace

Job::Strategy ReadStrategy(const json& value, const std::string& path, JsonErrors* errors) {
  Job::Strategy strategy;
  if (value.is_string()) {
    ReadName(value, path, errors);
    return strategy;
  }
  JsonObject object(value, path, errors);
  if (const json* name = object.Find("name")) ReadName(*name, object.PathOf("name"), errors);
  object.ReadInteger("min_shard_bytes", kMinShardBytes, &strategy.min_shard_bytes);
  object.ReadInteger("chunk_bytes", kChunkBytes, &strategy.chunk_bytes);
  if (strategy.chunk_bytes % kChunkAlignmentBytes != 0) {
    object.AddWrong("chunk_bytes", strategy.chunk_bytes,
                    absl::StrCat("a multiple of ", kChunkAlignmentBytes));
  }
  object.ReadInteger("window_steps", kWindowSteps, &strategy.window_steps);
  object.ReadNumber("lease_timeout_seconds", kLeaseTimeoutSeconds, &strategy.lease_timeout_seconds);
  object.ReadNumber("speculate_after", kSpeculateAfter, &strategy.speculate_after);
  if (object.Find("max_staleness") != nullptr)
    object.ReadInteger("max_staleness", kMaxStaleness, &strategy.max_staleness.emplace());
  object.RejectUnknownKeys();
  return strategy;
}

}  // namespace shoal
