#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/common/base/temporary_directory.h"

namespace shoal {

// A test with its own folder and a model file in it. Removes the folder at the end.
class JobFilesTest : public ::testing::Test {
 protected:
  JobFilesTest() {
    Write("model.json", R"({"class_name": "Sequential", "config": {"layers": [], "name": "m"}})");
  }

  // Writes a file of the folder and returns its path.
  std::string Write(const std::string& name, const std::string& content) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  std::string WriteJob(const nlohmann::json& job) { return Write("job.json", job.dump()); }

  // Returns the smallest complete job.
  static nlohmann::json MinimalJob() {
    return {{"name", "tiny"},
            {"model", "model.json"},
            {"data", {{"training", {{"images", "x.npy"}, {"labels", "y.npy"}}}}},
            {"loss", "mse"},
            {"optimizer", "sgd"},
            {"epochs", 1}};
  }

  const TemporaryDirectory temporary_;
  const std::filesystem::path directory_ = temporary_.path();
};

}  // namespace shoal
