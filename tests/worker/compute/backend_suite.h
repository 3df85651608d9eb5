#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/worker/compute/suite_backends.h"

namespace shoal {

// Tests that run on the backend that is their parameter. Skips a backend whose device this machine
// lacks.
class BackendSuite : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const absl::Status device = CheckDevice(GetParam());
    if (!device.ok()) GTEST_SKIP() << "No GPU here: " << device.message();
  }
};

}  // namespace shoal
