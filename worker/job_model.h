#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/loss/keras_loss.h"
#include "common/model/keras_model.h"
#include "common/training_metric/metric.h"
#include "worker/compute/model_runner.h"

namespace shoal {

// What a job computes, made from its texts: the same wherever it is computed. Plain data.
struct JobModel {
  KerasModel model;
  std::shared_ptr<const KerasLoss> loss;
  std::vector<std::shared_ptr<const Metric>> metrics;  // those that suit the loss and the output
  std::vector<std::string> metric_names;               // that the figures have in the job
  bool weighted = false;                               // whether data have weights
  std::map<int64_t, double> class_weights;             // of classes that there are
  int64_t micro_batch_size = 0;                        // as ModelRunner::Options has it

  // Errors name what of the job cannot be computed, or does not go together.
  static absl::StatusOr<JobModel> Of(const Job& job);

  // For its runner; where and how it runs is the caller's.
  ModelRunner::Options RunnerOptions() const;
};

}  // namespace shoal
