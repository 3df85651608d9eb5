#pragma once

#include <string>
#include <utility>
#include <vector>

namespace shoal {

// The log of a process: one line an event on stderr, times in UTC.
//   text: 2026-11-21T13:00:00.123Z I worker-0 lease taken first=128 count=64
//   json: {"time":"2026-11-21T13:00:00.123Z","level":"info","task":"worker-0",
//          "message":"lease taken","first":"128","count":"64"}
// A message of several lines is several lines of text, one event of JSON. All thread-safe.

enum class LogFormat { kText, kJson };
enum class LogLevel { kInfo, kWarning, kError };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;  // what is below is left out
  std::string task = "shoal";        // "worker-0"
};

// Sets format, level and task; until then they are LogOptions' defaults. May be called again, for
// example when the task is known.
void StartLogging(const LogOptions& options);

// Names and values that belong to a message.
using LogFields = std::vector<std::pair<std::string, std::string>>;

void LogInfo(const std::string& message, const LogFields& fields = {});
void LogWarning(const std::string& message, const LogFields& fields = {});
void LogError(const std::string& message, const LogFields& fields = {});

}  // namespace shoal
