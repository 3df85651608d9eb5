#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/model/graph.h"
#include "common/model/keras_model.h"
#include "common/model/ops.h"
#include "worker/input/dataset.h"

namespace shoal {

// That the model has one input and one output: a job has data for one of each.
absl::Status CheckModelOfJob(const KerasModel& model);

// Opens a data set of a job for a model that CheckModelOfJob() takes, and checks that its labels
// suit the loss. Errors are those of OpenDataset and CheckLabels.
absl::StatusOr<std::unique_ptr<Dataset>> OpenJobData(const Job::DataSource& source,
                                                     const LossAttributes& loss,
                                                     const Graph& model);

}  // namespace shoal
