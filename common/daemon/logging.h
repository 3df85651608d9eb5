#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace shoal {

// The log of a process: one line an event on stderr, times in UTC.
//   text: 2026-11-21T13:00:00.123Z I worker-0 lease taken first=128 count=64
//   json: {"time":"2026-11-21T13:00:00.123Z","level":"info","task":"worker-0",
//          "message":"lease taken","first":"128","count":"64"}
// A message of several lines is several lines of text, from the second on indented; it is one event
// of JSON. Nothing that a peer has said can forge a line or steer a terminal, and what is very long
// is cut.
//
// Logging never waits: a thread writes the lines (common/base/output_queue.h). When nobody reads
// them, up to 1 MiB is kept and the rest is lost; a line says so once there is a reader again. All
// thread-safe.

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

// Has what is logged come out when the process crashes, too: on the signals of a crash. An
// exception that nobody catches and a broken SHOAL_CHECK are logged. The process then ends as it
// would have.
void WriteLogOnCrash();

// Waits until all that was logged is written, for `patience` at most; false when it is not. To be
// called before the process ends.
bool FlushLog(std::chrono::milliseconds patience);

// Lines lost so far.
uint64_t LostLogLines();

// Names and values that belong to a message.
using LogFields = std::vector<std::pair<std::string, std::string>>;

// Messages of all levels go there instead of to stderr; with an empty one, to stderr again. It must
// not log.
using LogSink = std::function<void(const std::string& message, const LogFields& fields)>;
void SendLogTo(LogSink sink);

void LogInfo(const std::string& message, const LogFields& fields = {});
void LogWarning(const std::string& message, const LogFields& fields = {});
void LogError(const std::string& message, const LogFields& fields = {});

}  // namespace shoal
