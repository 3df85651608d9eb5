#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "worker/input/dataset/feature.h"

namespace shoal {

// Chooses the data that a trained model computes on, as the user gives it: empty or "test" for the
// job's test set, "training" for its training set, else the path of a file or folder ("./test" for
// a file with that name).
// Reads a path with the options of the job's test set, or else of its training set, if that has the
// same format; the name tells the format (GuessDataSource). Reads all of it, because the job's
// split applies only to the job's data. Its classes and columns are those of the job
// (WithNamesOfJob). Caches nothing, because each example is read once. kInvalidArgument tells what
// the user should give.
absl::StatusOr<DataSource> ChooseData(const Job& job, const std::string& given);

// The same for predictions by a model with these inputs. The data need no labels: `given` may also
// be any number of pictures and picture folders, or a single file of examples (IDX, NPY or .npz).
// An .npz contributes its only array, or the one with the input's name.
absl::StatusOr<DataSource> ChooseInputs(const Job& job, const std::vector<std::string>& given,
                                        const std::vector<Feature>& inputs);

}  // namespace shoal
