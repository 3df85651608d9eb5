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
#include "worker/input/dataset.h"

namespace shoal {

// That the model has one output: a job has labels for one.
absl::Status CheckModelOfJob(const KerasModel& model);

// The inputs of a model, in its order.
std::vector<Feature> InputsOf(const Graph& model);

// Opens a data set of a job for a model that CheckModelOfJob() takes, and checks that its labels
// suit the loss, as many of them as LabelsLookedAt. Errors are those of OpenDataset,
// CheckLabelShape and CheckLabels.
absl::StatusOr<std::unique_ptr<Dataset>> OpenJobData(const DataSource& source, const Loss& loss,
                                                     const Graph& model);

// The features, by index, that batches of all of these data sets, of which each may be null, can
// have as bytes: those that are stored so in each, and of which any byte is right. (Of ids, say, of
// which some are too large, that is looked at where they are read as floats.)
std::set<size_t> ByteInputsOf(std::initializer_list<const Dataset*> data);

// How many of a data set's labels are looked at when it is opened: all but those of a very large
// one, which are seen when their steps come.
uint64_t LabelsLookedAt(const Dataset& dataset);

}  // namespace shoal
