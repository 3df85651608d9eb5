#include "common/daemon/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

// What `log` writes on stderr, by lines.
template <typename Function>
std::vector<std::string> Lines(const LogOptions& options, Function log) {
  ::testing::internal::CaptureStderr();
  StartLogging(options);
  log();
  std::istringstream text(::testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(LoggingTest, TextHasTimeLevelTaskMessageAndFields) {
  const auto lines = Lines({.task = "worker-0"}, [] {
    LogInfo("lease taken", {{"first", "128"}, {"reason", "no \"work\" left"}, {"empty", ""}});
    LogWarning("slow");
    LogError("lost");
  });
  ASSERT_THAT(lines, SizeIs(3));
  const std::string time = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z ";
  EXPECT_THAT(
      lines[0],
      MatchesRegex(time + "I worker-0 lease taken first=128 reason=\"no \\\\\"work\\\\\" left\" "
                          "empty=\"\""));
  EXPECT_THAT(lines[1], MatchesRegex(time + "W worker-0 slow"));
  EXPECT_THAT(lines[2], MatchesRegex(time + "E worker-0 lost"));
}

TEST(LoggingTest, JsonIsOneObjectALine) {
  const auto lines = Lines({.format = LogFormat::kJson, .task = "ps-1"}, [] {
    LogInfo("two\nlines \"quoted\" {} %v \xff", {{"key", "a\tb"}});
    LogWarning("w");
  });
  ASSERT_THAT(lines, SizeIs(2));
  const json event = json::parse(lines[0]);
  EXPECT_EQ(event["level"], "info");
  EXPECT_EQ(event["task"], "ps-1");
  EXPECT_EQ(event["message"], "two\nlines \"quoted\" {} %v \xef\xbf\xbd");
  EXPECT_EQ(event["key"], "a\tb");
  EXPECT_THAT(event["time"].get<std::string>(), MatchesRegex("[0-9T:.-]{23}Z"));
  EXPECT_EQ(json::parse(lines[1])["level"], "warning");
}

TEST(LoggingTest, LinesOfAMessageAreLinesOfText) {
  const auto lines = Lines({}, [] { LogError("first\nsecond", {{"k", "v"}}); });
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0], ::testing::EndsWith("E shoal first"));
  EXPECT_THAT(lines[1], ::testing::EndsWith("E shoal second k=v"));
}

TEST(LoggingTest, ControlCharactersOfAPeerDoNotReachTheTerminal) {
  const auto lines = Lines({}, [] { LogInfo("a\x1b[2Jb", {{"k", "\r"}}); });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].find('\x1b'), std::string::npos);
  EXPECT_EQ(lines[0].find('\r'), std::string::npos);
}

TEST(LoggingTest, LevelLeavesOutWhatIsBelow) {
  const auto log = [] {
    LogInfo("i");
    LogWarning("w");
    LogError("e");
  };
  EXPECT_THAT(Lines({.level = LogLevel::kInfo}, log), SizeIs(3));
  EXPECT_THAT(Lines({.level = LogLevel::kWarning}, log), SizeIs(2));
  EXPECT_THAT(Lines({.level = LogLevel::kError}, log), SizeIs(1));
}

TEST(LoggingTest, ThreadsDoNotMixTheirLines) {
  const auto lines = Lines({}, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([] {
        for (int i = 0; i < 200; ++i) LogInfo("message", {{"key", "value"}});
      });
    }
    StartLogging({.task = "renamed-0"});
    for (std::thread& thread : threads) thread.join();
  });
  ASSERT_THAT(lines, SizeIs(800));
  for (const std::string& line : lines)
    EXPECT_THAT(line, ::testing::EndsWith(" message key=value"));
}

}  // namespace
}  // namespace shoal
