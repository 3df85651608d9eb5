#include "tests/simulation/workload/draw_job.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/callback/callback.h"
#include "common/json/json_errors.h"
#include "tests/simulation/workload/draw_model.h"

namespace shoal {

Job DrawJob(Random& random, uint64_t seed, uint64_t examples, Workload::SumsIn* sums_in) {
  Job job;
  job.name = "simulated";
  job.model_json = DrawModel(random, seed);
  job.training = {.images = "/simulated/images", .labels = "/simulated/labels"};
  if (random.OneIn(3)) job.test = {.images = "/simulated/test", .labels = "/simulated/tests"};
  job.loss = R"("mse")";
  if (random.Coin()) job.metrics = {"accuracy"};
  const bool momentum = random.Coin();
  *sums_in = momentum ? Workload::SumsIn::kMomentum : Workload::SumsIn::kValues;
  job.optimizer = absl::StrFormat(
      R"({"class_name": "SGD", "config": {"learning_rate": 1, "momentum": %d}})", momentum ? 1 : 0);
  job.batch_size = static_cast<int64_t>(random.Between(1, 4));
  const uint64_t epoch_steps = (examples + job.batch_size - 1) / job.batch_size;
  const uint64_t steps = random.Between(20, 150);
  if (random.Coin()) {
    job.epochs = std::max<uint64_t>(1, steps / epoch_steps);
  } else {
    job.steps = steps;
  }
  job.strategy.chunk_bytes = 64 << random.Below(3);
  job.strategy.min_shard_bytes = 16 << random.Below(5);
  job.strategy.window_steps = random.OneIn(4) ? random.Between(1, 8) : random.Between(8, 64);
  job.strategy.lease_timeout_seconds = static_cast<double>(random.Between(1, 6));
  if (random.OneIn(4)) {
    job.checkpoint.every_seconds = 0.1 * static_cast<double>(random.Between(1, 20));
  } else if (!random.OneIn(8)) {
    job.checkpoint.every_steps = random.Between(3, 40);
  }
  job.checkpoint.keep = static_cast<int>(random.Between(1, 3));
  job.seed = random.Below(1000);
  return job;
}

void DrawCallbacks(Random& random, Workload* workload) {
  Job& job = workload->job;
  workload->sums_in = Workload::SumsIn::kValues;
  job.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1, "momentum": 0}})";
  workload->training_examples = job.batch_size * random.Between(2, 12);
  job.epochs = random.OneIn(4) ? 0 : random.Between(2, 12);
  job.steps = job.epochs == 0 ? random.Between(5, 60) : 0;
  job.test = {.images = "/simulated/test", .labels = "/simulated/tests"};
  if (workload->test_examples == 0) workload->test_examples = random.Between(1, 12);
  const bool stops = !random.OneIn(4);
  // The order of the draws is part of what a seed means. C++ leaves that of arguments open.
  const char* const restores_best = random.Coin() ? "true" : "false";
  const uint64_t patience = random.Below(4);
  const std::string stopping = absl::StrFormat(
      R"({"class_name": "EarlyStopping", "config": {"patience": %d, "restore_best_weights": %s}})",
      patience, restores_best);
  const std::string best = stops && random.Coin() ? "" : R"("ModelCheckpoint")";
  const std::string list =
      absl::StrCat("[", stops ? stopping : "", stops && !best.empty() ? ", " : "", best, "]");
  JsonErrors errors("");
  job.callbacks =
      ReadCallbacks(nlohmann::json::parse(list), "$.callbacks", {{"val_loss", false}}, &errors);
  SHOAL_CHECK(errors.ToStatus().ok(), list);
}

void DrawCompression(Random& random, Workload* workload) {
  if (!random.OneIn(4)) return;
  Job::Compression& compression = workload->job.compression;
  if (random.Coin()) compression.push = "bf16";
  if (random.Coin()) compression.pull = random.Coin() ? "bf16" : "int8";
}

}  // namespace shoal
