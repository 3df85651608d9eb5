#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"

namespace shoal {

// What the classes of a job are called, by their numbers: by its training set, where that is a
// folder of pictures, its "class_names" or else its folders, in sorted order. Empty where the job
// has none, and where it names none and the folder is not on this machine.
absl::StatusOr<std::vector<std::string>> ClassNamesOfJob(const Job& job);

// `data`, which the job's model is evaluated on, in the words of the training set. A class has the
// number there that it was trained as, whatever folders there are, and an input the columns of a
// CSV that it was trained on, wherever they stand. Where the job's are not known, or `data` has
// none with names, or features of its own, it stays as it is. Opening it refuses a folder of no
// such class and a file without such a column; that its own "class_names" are others is an error
// here.
absl::StatusOr<DataSource> WithNamesOfJob(const Job& job, DataSource data);

// That the training set has a folder for each class that the job names: only other data may lack
// some. OK where the folder is not on this machine.
absl::Status CheckClassesOfTraining(const Job& job);

// The same job, which says what its classes or columns are called, as far as a job can (UTF-8, 1
// MiB in all), so that its run and its checkpoints know them without the training data.
absl::Status WriteNames(Job* job);

// Takes from `job` the names of its columns where `run`, the same job when it was begun, has none,
// and by place they are the same: equal jobs have equal texts. They stay where they are others, and
// where that is not known, as the table is not on this machine.
void NameColumnsAsRun(const Job& run, Job* job);

}  // namespace shoal
