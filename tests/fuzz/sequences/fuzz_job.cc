#include "tests/fuzz/sequences/fuzz_job.h"

#include "common/job/job_strategy.h"
#include "common/model/keras_model.h"
#include "tests/fuzz/sequences/fuzz_check.h"

namespace shoal {
namespace {

constexpr char kModel[] = R"json({
  "class_name": "Sequential",
  "config": {
    "name": "tiny",
    "layers": [
      {"class_name": "InputLayer", "config": {"name": "input", "batch_shape": [null, 3]}},
      {"class_name": "Dense", "config": {"name": "first", "units": 4, "activation": "linear", "use_bias": true,
        "kernel_initializer": {"class_name": "Zeros", "config": {}},
        "bias_initializer": {"class_name": "Zeros", "config": {}}}},
      {"class_name": "Dense", "config": {"name": "last", "units": 2, "activation": "linear", "use_bias": true,
        "kernel_initializer": {"class_name": "Zeros", "config": {}},
        "bias_initializer": {"class_name": "Zeros", "config": {}}}}
    ]
  }
})json";

Job MakeJob(uint8_t variant) {
  Job job;
  job.name = "fuzzed";
  job.model_json = kModel;
  job.training = {.images = "/data/images", .labels = "/data/labels"};
  if ((variant & 1) != 0) job.test = {.images = "/data/test", .labels = "/data/tests"};
  job.loss = R"("mse")";
  job.metrics = {"accuracy"};
  job.optimizer = R"({"class_name": "SGD", "config": {"learning_rate": 1, "momentum": 0}})";
  job.batch_size = 2;
  job.epochs = 2;
  // A worker may report any loss.
  job.stop_after_nan_steps = 0;
  job.strategy.chunk_bytes = 64;
  job.strategy.min_shard_bytes = 16;
  job.strategy.window_steps = (variant & 2) != 0 ? 4 : 64;
  job.strategy.lease_timeout_seconds = 2;
  if ((variant & 4) != 0) {
    job.strategy.name = "sync";
    job.strategy.gradients_per_update = 2;
  }
  job.checkpoint.every_steps = (variant & 8) != 0 ? 3 : 0;
  job.checkpoint.every_seconds = 0;
  job.checkpoint.keep = 2;
  FuzzCheck(ResolveStrategy(/*listed_workers=*/1, &job).ok(), "the strategy is wrong");
  return job;
}

std::vector<Variable> VariablesOf(const Job& job) {
  const absl::StatusOr<KerasModel> model = ParseKerasModel(job.model_json);
  FuzzCheck(model.ok(), model.status().ToString());
  return model->graph.variables();
}

}  // namespace

FuzzJob::FuzzJob(uint8_t variant)
    : job_(MakeJob(variant)),
      text_(job_.ResolvedText()),
      fingerprint_(JobFingerprint(text_)),
      variables_(VariablesOf(job_)),
      layout_(variables_),
      plan_(BatchPlanOf(job_, kTrainingExamples).steps()) {
  if (job_.strategy.in_rounds()) rounds_.emplace(plan_, job_.strategy.gradients_per_update);
}

const FuzzJob& FuzzJob::Of(uint8_t variant) {
  static const std::vector<FuzzJob>* const jobs = [] {
    auto* made = new std::vector<FuzzJob>;
    for (int i = 0; i < kVariants; ++i) made->emplace_back(static_cast<uint8_t>(i));
    return made;
  }();
  return (*jobs)[variant % kVariants];
}

float FuzzJob::Pushed(uint64_t step, int variable, int64_t element) {
  // The gradient: SGD with a learning rate of 1 subtracts it.
  return -static_cast<float>(1 + (step * 31 + variable * 5 + element * 7) % 29);
}

// In a round, the mean of two integers is exact.
float FuzzJob::Trained(int variable, int64_t element) const {
  float value = 0;
  for (uint64_t step = 0; step < plan_.total_steps(); ++step) {
    const float gradient = Pushed(step, variable, element);
    value -=
        rounds_.has_value() ? gradient / static_cast<float>(rounds_->Of(step).count) : gradient;
  }
  return value;
}

}  // namespace shoal
