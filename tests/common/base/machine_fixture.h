#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/common/base/temporary_directory.h"

namespace shoal {

// A machine whose /proc and /sys the test writes, below `directory_`.
class MachineFixture : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = directory_.path() + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const TemporaryDirectory directory_;
};

}  // namespace shoal
