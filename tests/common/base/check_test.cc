#include "common/base/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shoal {
namespace {

using ::testing::KilledBySignal;

TEST(CheckDeathTest, ABrokenInvariantIsSaidInEveryBuild) {
  const int size = 3;
  EXPECT_EXIT(SHOAL_CHECK(size == 0, size, " bytes are left"), KilledBySignal(SIGABRT),
              "base/check_test.cc:[0-9]+: size == 0 .*3 bytes are left\n");
  EXPECT_EXIT(SHOAL_CHECK(size < 0), KilledBySignal(SIGABRT),
              "base/check_test.cc:[0-9]+: size < 0 ");
}

TEST(CheckDeathTest, AReporterIsTold) {
  const auto fail = [] {
    SetCheckReporter(
        [](const std::string& text) { std::fprintf(stderr, "told: %s", text.data()); });
    SHOAL_CHECK(false);
  };
  EXPECT_EXIT(fail(), KilledBySignal(SIGABRT), "^told: .*base/check_test.cc:[0-9]+: false ");
}

TEST(CheckTest, ACheckThatHoldsBuildsNoText) {
  const auto text = []() -> std::string {
    ADD_FAILURE();
    return "";
  };
  SHOAL_CHECK(true, text());
  SetCheckReporter(nullptr);
}

}  // namespace
}  // namespace shoal
