#pragma once

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/job/job.h"
#include "tests/common/job/job_files.h"

namespace shoal {

// Loads jobs from the test's folder and returns their errors.
class JobLoadingTest : public JobFilesTest {
 protected:
  Job Load(const nlohmann::json& root) {
    const auto job = LoadJob(WriteJob(root), /*check_data=*/false);
    EXPECT_TRUE(job.ok()) << job.status();
    return job.value_or(Job{});
  }

  // Returns the error lines without their prefix, the path of the job file.
  std::string LoadError(const nlohmann::json& root, bool check_data = false) {
    const std::string path = WriteJob(root);
    const auto job = LoadJob(path, check_data);
    EXPECT_EQ(job.status().code(), absl::StatusCode::kInvalidArgument) << root;
    std::string message(job.status().message());
    EXPECT_THAT(message, ::testing::StartsWith(path + ": "));
    for (size_t at; (at = message.find(path + ": ")) != std::string::npos;)
      message.erase(at, path.size() + 2);
    return message;
  }

  std::string ErrorWith(const std::string& pointer, const nlohmann::json& value) {
    nlohmann::json root = MinimalJob();
    root[nlohmann::json::json_pointer(pointer)] = value;
    return LoadError(root);
  }
};

}  // namespace shoal
