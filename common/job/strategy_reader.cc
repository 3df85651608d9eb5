#include "common/job/strategy_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

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
constexpr IntegerRange kGradientsPerUpdate = {1, 1 << 20};

std::string ReadName(const json& value, const std::string& path, JsonErrors* errors) {
  const std::vector<std::string> names = {"async", "sync"};
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  errors->Add(path, absl::StrCat("is ", ShortJson(value), ", a strategy that Shoal lacks",
                                 SuggestName(name, names)));
  return Job::Strategy().name;
}

// What belongs to one strategy, beside the name of another.
void RefuseFieldsOfOthers(JsonObject& object, const Job::Strategy& strategy) {
  if (strategy.sync() && strategy.max_staleness.has_value()) {
    object.AddWrong("max_staleness", *strategy.max_staleness,
                    "absent under \"sync\", where no gradient is of old parameters");
  }
  if (strategy.sync() && strategy.rate_scale.by_staleness) {
    object.AddWrong("learning_rate_by_staleness", true,
                    "absent under \"sync\", where no gradient is of old parameters");
  }
  if (!strategy.sync() && strategy.gradients_per_update > 0) {
    object.AddWrong("gradients_per_update", strategy.gradients_per_update,
                    "absent under \"async\", where each gradient is an update; is the strategy to "
                    "be \"sync\"?");
  }
  if (strategy.gradients_per_update > strategy.window_steps) {
    object.AddWrong("gradients_per_update", strategy.gradients_per_update,
                    absl::StrCat("at most $.strategy.window_steps, ", strategy.window_steps,
                                 ", as a round lies in the window"));
  }
}

}  // namespace

Job::Strategy ReadStrategy(const json& value, const std::string& path, JsonErrors* errors) {
  Job::Strategy strategy;
  if (value.is_string()) {
    strategy.name = ReadName(value, path, errors);
    return strategy;
  }
  JsonObject object(value, path, errors);
  if (const json* name = object.Find("name"))
    strategy.name = ReadName(*name, object.PathOf("name"), errors);
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
  object.ReadBool("learning_rate_by_staleness", &strategy.rate_scale.by_staleness);
  if (object.Find("gradients_per_update") != nullptr)
    object.ReadInteger("gradients_per_update", kGradientsPerUpdate, &strategy.gradients_per_update);
  RefuseFieldsOfOthers(object, strategy);
  object.RejectUnknownKeys();
  return strategy;
}

}  // namespace shoal
