#include "common/job/strategy_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"
#include "common/optimizer/optimizer.h"
#include "common/sharding/chunk_limits.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr IntegerRange kMinShardBytes = {1, int64_t{1} << 40};
constexpr IntegerRange kChunkBytes = {64, kMaxChunkBytes};
constexpr int64_t kChunkAlignmentBytes = 64;  // chunks begin on cache lines
constexpr IntegerRange kWindowSteps = {1, 1 << 20};
constexpr NumberRange kLeaseTimeoutSeconds = {.min = 0.1, .max = 86400};
constexpr IntegerRange kMaxStaleness = {0, 1 << 20};
constexpr NumberRange kSpeculateAfter = {.min = 1, .max = 1000};
constexpr IntegerRange kGradientsPerUpdate = {1, 1 << 20};
constexpr IntegerRange kWarmupSteps = {1, 1'000'000'000};
constexpr IntegerRange kWorkers = {1, 1 << 20};
constexpr IntegerRange kLookAhead = {1, 1 << 20};
constexpr NumberRange kWorkerMomentum = {.min = 0.001, .max = 1};
constexpr IntegerRange kBatchesPerStep = {1, 1 << 20};
constexpr IntegerRange kFragments = {1, 1024};
constexpr uint64_t kBatchesPerStepOfLocal = 50;  // DiLoCo's value for links that are not very slow
constexpr double kLeaseSecondsPerBatch = 10;

std::string ReadName(const json& value, const std::string& path, JsonErrors* errors) {
  const std::vector<std::string> names = {"async", "sync", "local"};
  const std::string name = value.is_string() ? value.get<std::string>() : "";
  if (std::find(names.begin(), names.end(), name) != names.end()) return name;
  errors->Add(path, absl::StrCat("is ", ShortJson(value), ", a strategy that Shoal lacks",
                                 SuggestName(name, names)));
  return Job::Strategy().name;
}

// The defaults that depend on the strategy's name.
Job::Strategy DefaultsOf(const std::string& name) {
  Job::Strategy strategy;
  strategy.name = name;
  if (strategy.local()) strategy.batches_per_step = kBatchesPerStepOfLocal;
  return strategy;
}

// Rejects options about old parameters under strategies that have none or handle them otherwise.
void RejectStaleness(JsonObject& object, const Job::Strategy& strategy) {
  const bool in_rounds = strategy.in_rounds();
  const std::string of_no_old =
      absl::StrCat("absent under \"", strategy.name, "\"",
                   strategy.sync() ? "" : " with $.strategy.gradients_per_update",
                   ", where every gradient uses the newest parameters");
  if (in_rounds && strategy.max_staleness.has_value())
    object.AddWrong("max_staleness", *strategy.max_staleness, of_no_old);
  if (!strategy.learning_rate_by_staleness) return;
  if (in_rounds) {
    object.AddWrong("learning_rate_by_staleness", true, of_no_old);
  } else if (strategy.local()) {
    object.AddWrong("learning_rate_by_staleness", true,
                    "absent under \"local\", where the momentum of the outer optimizer handles "
                    "staleness");
  }
}

std::string ReadScale(JsonObject& object) {
  const json* const value = object.Find("scale_learning_rate");
  if (value == nullptr || *value == "linear" || *value == "sqrt")
    return value == nullptr ? "" : value->get<std::string>();
  object.AddWrong("scale_learning_rate", *value, "\"linear\" or \"sqrt\"");
  return "";
}

// Rejects options that depend on the number of workers or gradients, under strategies that do not
// use them.
void RejectScales(JsonObject& object, const Job::Strategy& strategy) {
  const std::string of_async =
      absl::StrCat("absent under \"", strategy.name, "\": it is an option of \"async\"");
  for (const char* field : {"momentum_by_workers", "look_ahead", "worker_momentum", "workers"}) {
    const json* const given = object.Find(field);
    if (given != nullptr && *given != false && (strategy.sync() || strategy.local()))
      object.AddWrong(field, *given, of_async);
  }
  for (const char* field : {"scale_learning_rate", "warmup_steps"}) {
    if (const json* const given = object.Find(field); given != nullptr && strategy.local()) {
      object.AddWrong(field, *given,
                      "absent under \"local\"; give the outer optimizer a schedule instead");
    }
  }
  if (strategy.sync() && strategy.warmup_steps > 0 && strategy.scale_learning_rate.empty()) {
    object.AddWrong("warmup_steps", strategy.warmup_steps,
                    "absent under \"sync\" without \"scale_learning_rate\", which it warms up");
  }
  if (strategy.workers > 0 && !strategy.scales_by_workers()) {
    object.AddWrong("workers", strategy.workers,
                    "absent without \"scale_learning_rate\", \"momentum_by_workers\" and "
                    "\"warmup_steps\", which use it");
  }
}

// Rejects fragments if all values of a step must have one version. Each fragment gets the latest
// values at the time of its exchange.
void RejectFragments(JsonObject& object, const Job::Strategy& strategy) {
  if (strategy.fragments <= 1 || !strategy.local()) return;
  const auto reject = [&](const std::string& must) {
    object.AddWrong("fragments", strategy.fragments, must);
  };
  if (strategy.in_rounds()) {
    reject(
        "absent with $.strategy.gradients_per_update, where a step uses one version of all values");
  } else if (strategy.max_staleness.has_value()) {
    reject("absent with $.strategy.max_staleness, where a step begins by pulling all values");
  }
}

// Rejects options that belong to another strategy.
void RejectFieldsOfOthers(JsonObject& object, const Job::Strategy& strategy) {
  RejectStaleness(object, strategy);
  RejectScales(object, strategy);
  RejectFragments(object, strategy);
  const bool async = !strategy.sync() && !strategy.local();
  if (async && strategy.gradients_per_update > 0) {
    object.AddWrong("gradients_per_update", strategy.gradients_per_update,
                    "absent under \"async\", where each gradient is an update; did you mean the "
                    "strategy \"sync\"?");
  }
  for (const char* field : {"batches_per_step", "fragments", "outer_optimizer"}) {
    const json* const given = object.Find(field);
    if (strategy.local() || given == nullptr) continue;
    object.AddWrong(field, *given,
                    absl::StrCat("absent under \"", strategy.name,
                                 "\", where workers push gradients; did you mean the strategy "
                                 "\"local\"?"));
  }
  if (strategy.gradients_per_update > strategy.window_steps) {
    object.AddWrong("gradients_per_update", strategy.gradients_per_update,
                    absl::StrCat("at most $.strategy.window_steps, ", strategy.window_steps,
                                 ", as a round lies in the window"));
  }
}

// In rounds, all differences start from the same values, and the default applies their plain mean.
// Without rounds, the default depends on the number of workers.
std::string ReadOuter(JsonObject& object, const Job::Strategy& strategy, JsonErrors* errors) {
  const json plain = {{"class_name", "SGD"}, {"config", {{"learning_rate", 1}}}};
  const json* value = object.Find("outer_optimizer");
  if (!strategy.local() || (value == nullptr && !strategy.in_rounds())) return "";
  const auto outer = ReadOuterOptimizer(value == nullptr ? plain : *value,
                                        object.PathOf("outer_optimizer"), errors);
  if (outer == nullptr) return "";
  if (outer->recomputes_values()) {
    errors->Add(object.PathOf("outer_optimizer"),
                "computes the variables from its sums alone, and would lose their first values; "
                "choose another, for example \"SGD\"");
  }
  if (strategy.fragments > 1 && outer->clipping().kind != Clipping::Kind::kNone) {
    errors->Add(object.PathOf("outer_optimizer"),
                "clips whole differences, and $.strategy.fragments sends them in parts; clip in "
                "$.optimizer instead");
  }
  return outer->config();
}

}  // namespace

Job::Strategy ReadStrategy(const json& value, const std::string& path, JsonErrors* errors) {
  // A plain name equals an object that contains only the name.
  const json named = {{"name", value}};
  JsonObject object(value.is_string() ? named : value, path, errors);
  std::string name = Job::Strategy().name;
  if (const json* given = object.Find("name"))
    name = ReadName(*given, value.is_string() ? path : object.PathOf("name"), errors);
  Job::Strategy strategy = DefaultsOf(name);
  object.ReadInteger("min_shard_bytes", kMinShardBytes, &strategy.min_shard_bytes);
  object.ReadInteger("chunk_bytes", kChunkBytes, &strategy.chunk_bytes);
  if (strategy.chunk_bytes % kChunkAlignmentBytes != 0) {
    object.AddWrong("chunk_bytes", strategy.chunk_bytes,
                    absl::StrCat("a multiple of ", kChunkAlignmentBytes));
  }
  object.ReadInteger("window_steps", kWindowSteps, &strategy.window_steps);
  object.ReadInteger("batches_per_step", kBatchesPerStep, &strategy.batches_per_step);
  object.ReadInteger("fragments", kFragments, &strategy.fragments);
  // A step of several batches takes longer, and so does the default lease.
  if (strategy.local()) {
    strategy.lease_timeout_seconds =
        std::clamp(kLeaseSecondsPerBatch * static_cast<double>(strategy.batches_per_step),
                   strategy.lease_timeout_seconds, kLeaseTimeoutSeconds.max);
  }
  object.ReadNumber("lease_timeout_seconds", kLeaseTimeoutSeconds, &strategy.lease_timeout_seconds);
  object.ReadNumber("speculate_after", kSpeculateAfter, &strategy.speculate_after);
  if (object.Find("max_staleness") != nullptr)
    object.ReadInteger("max_staleness", kMaxStaleness, &strategy.max_staleness.emplace());
  object.ReadBool("learning_rate_by_staleness", &strategy.learning_rate_by_staleness);
  strategy.scale_learning_rate = ReadScale(object);
  object.ReadBool("momentum_by_workers", &strategy.momentum_by_workers);
  object.ReadInteger("warmup_steps", kWarmupSteps, &strategy.warmup_steps);
  object.ReadInteger("workers", kWorkers, &strategy.workers);
  object.ReadInteger("look_ahead", kLookAhead, &strategy.look_ahead);
  object.ReadNumber("worker_momentum", kWorkerMomentum, &strategy.worker_momentum);
  if (object.Find("gradients_per_update") != nullptr)
    object.ReadInteger("gradients_per_update", kGradientsPerUpdate, &strategy.gradients_per_update);
  strategy.outer_optimizer = ReadOuter(object, strategy, errors);
  RejectFieldsOfOthers(object, strategy);
  object.RejectUnknownKeys();
  return strategy;
}

}  // namespace shoal
