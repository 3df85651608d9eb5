#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"

namespace shoal {

// Returns the names of a job's classes, by class number. If the training set is a folder of
// pictures, they are its "class_names" or else its folders, in sorted order. Empty if the job has
// no classes, or if it does not name them and the folder is not on this machine.
absl::StatusOr<std::vector<std::string>> ClassNamesOfJob(const Job& job);

// Maps `data`, on which the job's model is evaluated, to the names of the training set. A class
// gets the number from training, regardless of the folders in `data`, and an input gets the CSV
// columns from training, regardless of their positions. Returns `data` unchanged if the job's names
// are unknown, or if `data` has no names or has its own features. Opening the result rejects a
// folder of an unknown class and a file without such a column. An error here if `data` has other
// "class_names".
absl::StatusOr<DataSource> WithNamesOfJob(const Job& job, DataSource data);

// Checks that the training set has a folder for each class that the job names; only other data may
// lack some. OK if the folder is not on this machine.
absl::Status CheckClassesOfTraining(const Job& job);

// Writes the names of classes or columns into the job, if they fit (UTF-8, 1 MiB in total). Its run
// and its checkpoints then know them without the training data.
absl::Status WriteNames(Job* job);

// Removes the column names from `job` if `run`, the same job at its start, has none and the columns
// are the same by position: equal jobs must have equal texts. Keeps them if the columns differ, or
// if that is unknown because the table is not on this machine.
void MatchColumnNames(const Job& run, Job* job);

}  // namespace shoal
