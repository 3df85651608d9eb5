#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/json/json_errors.h"

namespace shoal {

struct JobReadOptions {
  // Absolute folder that relative paths start from. Empty: the text is a resolved job, whose paths
  // must be absolute and whose model must be inside.
  std::string base_dir;
  // JSON paths of what was given from elsewhere, and the folder that relative paths there start
  // from.
  std::vector<std::string> given;
  std::string given_dir;
  // Whether it is an error that a data file does not exist.
  bool check_data = false;

  // The folder that a relative path at `path` starts from.
  const std::string& BaseOf(const std::string& path) const;
};

// Reads a job from the JSON of a job file; what is wrong is added to `errors`, and then the job
// returned is not whole.
Job ReadJob(const nlohmann::json& root, const JobReadOptions& options, JsonErrors* errors);

}  // namespace shoal
