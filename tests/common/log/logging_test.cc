#include "common/log/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "common/base/check.h"
#include "tests/common/base/unread_pipe.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

// What `log` writes on stderr, by lines.
template <typename Function>
std::vector<std::string> Lines(const LogOptions& options, Function log) {
  ::testing::internal::CaptureStderr();
  StartLogging(options);
  log();
  EXPECT_TRUE(FlushLog(std::chrono::minutes(1)));
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

TEST(LoggingTest, LinesOfAMessageAreLinesOfTextThatForgeNoOther) {
  const auto lines = Lines({}, [] { LogError("first\nsecond", {{"k", "v\nw"}}); });
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0], EndsWith("E shoal first"));
  EXPECT_THAT(lines[1], EndsWith("E shoal   second k=v\\nw"));
}

TEST(LoggingTest, ALongLineIsCut) {
  const std::string name(1 << 20, 'x');
  for (const LogFormat format : {LogFormat::kText, LogFormat::kJson}) {
    const auto lines = Lines({.format = format}, [&] { LogInfo(name, {{"name", name}}); });
    ASSERT_THAT(lines, SizeIs(1));
    EXPECT_LT(lines[0].size(), 32 << 10);
    EXPECT_THAT(lines[0], AllOf(HasSubstr("x... (1032192 bytes more)"),
                                HasSubstr("x... (1044480 bytes more)")));
    EXPECT_EQ(json::accept(lines[0]), format == LogFormat::kJson);
  }
}

TEST(LoggingTest, ControlCharactersOfAPeerDoNotReachTheTerminal) {
  const auto lines = Lines({}, [] { LogInfo("a\x1b[2Jb", {{"k", "\r"}}); });
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].find('\x1b'), std::string::npos);
  EXPECT_EQ(lines[0].find('\r'), std::string::npos);
  const auto json_lines = Lines({.format = LogFormat::kJson}, [] {
    LogInfo(
        "a\x1b[2J\x7f\xc2\x9b"
        "b",
        {{"k", "\r\n"}});
  });
  ASSERT_THAT(json_lines, SizeIs(1));
  for (const char c : json_lines[0]) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << int{c};
  EXPECT_EQ(json::parse(json_lines[0])["k"], "\r\n");
}

TEST(LoggingTest, ASinkGetsTheLogInstead) {
  std::string sunk;
  const auto lines = Lines({}, [&] {
    SendLogTo([&](const std::string& message, const LogFields& fields) {
      sunk += message + fields[0].second;
    });
    LogInfo("m", {{"k", "v"}});
    SendLogTo({});
    LogInfo("n");
  });
  EXPECT_EQ(sunk, "mv");
  EXPECT_THAT(lines, ::testing::ElementsAre(EndsWith(" n")));
}

// What a process logs that ends by `crash`, on a pipe that is read only once it is full.
std::string LogOfACrash(const std::function<void()>& crash, int expected_signal) {
  UnreadPipe pipe;
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe.write_end(), STDERR_FILENO);
    WriteLogOnCrash();
    // More than the pipe takes: the last line is still in the buffer when the crash comes.
    for (int i = 0; i < 200; ++i) LogInfo(std::string(100, 'x'));
    LogInfo("the last line");
    crash();
    _exit(0);
  }
  pipe.CloseWriter();
  const std::string log = pipe.ReadUntil("nothing that is ever there");
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), expected_signal);
  return log;
}

TEST(LoggingDeathTest, BufferedLinesComeOutOnACrash) {
  EXPECT_THAT(LogOfACrash([] { std::abort(); }, SIGABRT), HasSubstr("the last line"));
  EXPECT_THAT(LogOfACrash([] { raise(SIGSEGV); }, SIGSEGV), HasSubstr("the last line"));
}

TEST(LoggingDeathTest, AnExceptionThatNobodyCatchesIsLogged) {
  EXPECT_THAT(LogOfACrash([]() noexcept { std::vector<int>().at(1); }, SIGABRT),
              HasSubstr(" E shoal an uncaught exception: vector"));
}

TEST(LoggingDeathTest, ABrokenInvariantIsLogged) {
  EXPECT_THAT(LogOfACrash([] { SHOAL_CHECK(1 == 2, "as was to be shown"); }, SIGABRT),
              ContainsRegex(" E shoal this is a fault in Shoal: log/logging_test.cc:[0-9]+: 1 == 2 "
                            "does not hold: as was to be shown\n"));
}

TEST(LoggingDeathTest, ACrashWaitsForAReaderOnlyForAMoment) {
  UnreadPipe pipe;
  const auto die = [&] {
    dup2(pipe.write_end(), STDERR_FILENO);
    WriteLogOnCrash();
    for (int i = 0; i < 200; ++i) LogInfo(std::string(100, 'x'));
    std::abort();
  };
  EXPECT_EXIT(die(), ::testing::KilledBySignal(SIGABRT), "");
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
  for (const std::string& line : lines) EXPECT_THAT(line, EndsWith(" message key=value"));
}

}  // namespace
}  // namespace shoal
