#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "common/job/job.h"
#include "common/model/keras_model.h"

namespace shoal {

// A valid cluster spec and a valid job.
struct ValidatedJob {
  std::optional<ClusterSpec> cluster;  // absent if not given
  Job job;
  std::vector<std::string> overridden;  // a line for each overridden field
  KerasModel model;
  std::string initial_weights;  // text of DescribeInitialWeights()
};

// Reads a cluster spec (like LoadClusterSpec(), but without a task), a job file and its model.
// Reads no cluster spec if there is neither a file nor TF_CONFIG. Collects all errors of all files
// in one status, a line each. Ignores data files. `overrides` are those of LoadJob().
absl::StatusOr<ValidatedJob> ValidateFiles(const std::string& cluster_spec_file,
                                           const std::string& job_file,
                                           const std::vector<JobOverride>& overrides = {});

// Returns the model of a job. Requires that the job's optimizer can train it. Errors name the file
// with the model: its own file, or `job_file`.
absl::StatusOr<KerasModel> ModelOfJob(const Job& job, const std::string& job_file);

// Returns lines that list which variables begin with saved values, and which do not and why
// (FindInitialWeights). Empty if the job names no initial weights. Errors name the file.
absl::StatusOr<std::string> DescribeInitialWeights(const Job& job, const KerasModel& model);

}  // namespace shoal
