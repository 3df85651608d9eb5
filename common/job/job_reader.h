#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/json/json_errors.h"

namespace shoal {

struct JobReadOptions {
  // Absolute folder from which relative paths start. Empty: the text is a resolved job, with
  // absolute paths and the model inside.
  std::string base_dir;
  // JSON paths of values from another source, such as flags, and the folder from which their
  // relative paths start.
  std::vector<std::string> given;
  std::string given_dir;
  // Whether a missing data file is an error.
  bool check_data = false;

  // The folder from which a relative path at `path` starts.
  const std::string& BaseOf(const std::string& path) const;
};

// Reads a job from the JSON of a job file. Adds problems to `errors`; the returned job is then
// incomplete.
Job ReadJob(const nlohmann::json& root, const JobReadOptions& options, JsonErrors* errors);

}  // namespace shoal
