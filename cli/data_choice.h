#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"

namespace shoal {

// What people may say for the data that a trained model is to be computed on: nothing or "test" for
// the job's test set, "training" for what it was trained on, else the path of a file or folder (one
// that is called so: "./test"). That is read as the job's test set is, or else as its training set,
// where one of them has its format, told by its name (GuessDataSource), and all of it: the job's
// split is for the job's data. Nothing is cached, as each example is read once. kInvalidArgument
// says what would be right.
absl::StatusOr<DataSource> ChooseData(const Job& job, const std::string& given);

}  // namespace shoal
