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
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// The computation of a job, made from its texts: the same on every machine. Plain data.
struct JobModel {
  KerasModel model;
  std::shared_ptr<const KerasLoss> loss;
  std::vector<std::shared_ptr<const Metric>> metrics;  // as chosen for the loss and the output
  std::vector<std::string> metric_names;               // the names of the metrics in the job
  bool weighted = false;                               // whether data have weights
  std::map<int64_t, double> class_weights;             // only of existing classes
  int64_t micro_batch_size = 0;                        // as in ModelRunner::Options

  // Errors name the part of the job that cannot be computed or does not fit the others.
  static absl::StatusOr<JobModel> Of(const Job& job);
  // The same with the parsed model of the job, for callers that have it.
  static absl::StatusOr<JobModel> Of(const Job& job, KerasModel model);

  // Options for its runner. The caller adds where and how it runs.
  ModelRunner::Options RunnerOptions() const;
};

}  // namespace shoal
