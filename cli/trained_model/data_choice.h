#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "worker/input/dataset/feature.h"

namespace shoal {

// What people may say for the data that a trained model is to be computed on: nothing or "test" for
// the job's test set, "training" for what it was trained on, else the path of a file or folder (one
// that is called so: "./test"). That is read as the job's test set is, or else as its training set,
// where one of them has its format, told by its name (GuessDataSource), and all of it: the job's
// split is for the job's data. Its classes and columns are those of the job (WithNamesOfJob).
// Nothing is cached, as each example is read once. kInvalidArgument says what would be right.
absl::StatusOr<DataSource> ChooseData(const Job& job, const std::string& given);

// Likewise for predictions by a model with these inputs, whose data need no labels: also picture
// files and folders of pictures, in any number, and a file of examples alone (IDX, NPY, or an .npz
// of which the array is taken that is the only one or is called like the input).
absl::StatusOr<DataSource> ChooseInputs(const Job& job, const std::vector<std::string>& given,
                                        const std::vector<Feature>& inputs);

}  // namespace shoal
