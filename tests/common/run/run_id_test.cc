#include "common/run/run_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/files/durable_file.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/bare_file_system.h"

namespace shoal {
namespace {

TEST(RunIdTest, StaysAsItWasDrawn) {
  const TemporaryDirectory directory;
  const std::string path = directory / ".run-id";
  const auto drawn = ReadOrMakeRunId(path, RealFileSystem());
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  EXPECT_THAT(*drawn, testing::MatchesRegex("[0-9a-f]{32}"));
  EXPECT_EQ(ReadOrMakeRunId(path, RealFileSystem()).value_or(""), *drawn);
  EXPECT_NE(DrawRunId(), *drawn);
}

TEST(RunIdTest, AnInvalidIdIsReplaced) {
  const TemporaryDirectory directory;
  const std::string path = directory / ".run-id";
  for (const std::string torn : {"", "12", "\n", "0123456789abcdef0123456789abcdeX\n"}) {
    ASSERT_TRUE(ReplaceFile(path, torn).ok());
    const auto drawn = ReadOrMakeRunId(path, RealFileSystem());
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    EXPECT_EQ(ReadOrMakeRunId(path, RealFileSystem()).value_or(""), *drawn);
  }
}

TEST(RunIdTest, ADiskThatTakesNoneIsAnError) {
  BareFileSystem disk;
  EXPECT_FALSE(ReadOrMakeRunId("/run/.run-id", &disk).ok());
}

}  // namespace
}  // namespace shoal
