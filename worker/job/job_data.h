#pragma once

#include <initializer_list>
#include <memory>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "common/model/graph.h"
#include "common/model/keras_model.h"
#include "common/model/loss.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// Checks that the model has one output: a job has labels for only one.
absl::Status CheckModelOfJob(const KerasModel& model);

// The inputs of a model, in its order.
std::vector<Feature> InputsOf(const Graph& model);

// Opens a data set of a job for a model that CheckModelOfJob() accepts. Checks the first
// CheckedLabelCount labels against the loss. Errors are those of OpenDataset, CheckLabelShape and
// CheckLabels.
absl::StatusOr<std::unique_ptr<Dataset>> OpenJobData(const DataSource& source, const Loss& loss,
                                                     const Graph& model);

// Returns the indices of the features that batches of all these data sets can pass as bytes. Each
// may be null. The data sets must store the feature as bytes, and every byte must be a valid value.
// (Otherwise, for example for ids with a max, reading them as floats checks the values.)
std::set<size_t> Uint8InputsOf(std::initializer_list<const Dataset*> data);

// The number of labels to check when opening a data set: all, except for a very large one. Its
// other labels are checked when their steps come.
uint64_t CheckedLabelCount(const Dataset& dataset);

}  // namespace shoal
