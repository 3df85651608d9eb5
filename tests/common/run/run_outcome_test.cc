#include "common/run/run_outcome.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

class RunOutcomeTest : public testing::Test {
 protected:
  void Write(const std::string& text) const { std::ofstream(paths_.end()) << text; }

  const TemporaryDirectory directory_;
  const RunPaths paths_{directory_.path()};
};

TEST_F(RunOutcomeTest, ReadsWhatWasWrittenLast) {
  EXPECT_FALSE(ReadRunOutcome(paths_).has_value());
  ASSERT_TRUE(WriteRunOutcome(paths_, {143, "stopped"}).ok());
  ASSERT_TRUE(WriteRunOutcome(paths_, {65, "\"images\"\nare damaged"}).ok());
  const std::optional<RunOutcome> read = ReadRunOutcome(paths_);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->exit_code, 65);
  EXPECT_EQ(read->cause, "\"images\"\nare damaged");
}

TEST_F(RunOutcomeTest, RemovedThereIsNone) {
  ASSERT_TRUE(WriteRunOutcome(paths_, {65, "damaged"}).ok());
  EXPECT_TRUE(RemoveRunOutcome(paths_).ok());
  EXPECT_FALSE(ReadRunOutcome(paths_).has_value());
  EXPECT_TRUE(RemoveRunOutcome(paths_).ok()) << "nor is that an error";
}

TEST_F(RunOutcomeTest, AnInvalidOutcomeSaysNothing) {
  for (const char* text : {"", "{", "[]", "{}", R"({"exit_code": "65"})", R"({"exit_code": 1e99})",
                           R"({"exit_code": 65.5})"}) {
    Write(text);
    EXPECT_FALSE(ReadRunOutcome(paths_).has_value()) << text;
  }
  Write(R"({"exit_code": 65, "cause": 7})");
  EXPECT_EQ(ReadRunOutcome(paths_).value().cause, "");
  Write("{\"exit_code\": 65, \"cause\": \"a\\u001b[2Jb\"}");
  EXPECT_EQ(ReadRunOutcome(paths_).value().cause.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace shoal
