#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace shoal {

// The log of a process: one line for each event on stderr, times in UTC.
//   text: 2026-11-21T13:00:00.123Z I worker-0 lease taken first=128 count=64
//   json: {"time":"2026-11-21T13:00:00.123Z","level":"info","task":"worker-0",
//          "message":"lease taken","first":"128","count":"64"}
// In text, a message of several lines takes several lines, indented from the second on. In JSON, it
// is one event. Text from peers cannot forge a line or control a terminal. Very long text is cut.
//
// Logging never waits: a thread writes the lines (common/base/output_queue.h). Without a reader, it
// keeps up to 1 MiB and drops the rest. Once there is a reader again, a line reports the loss. All
// functions are thread-safe.

enum class LogFormat { kText, kJson };
enum class LogLevel { kInfo, kWarning, kError };

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;  // drops messages below it
  std::string task = "shoal";        // "worker-0"
};

// Sets format, level and task. Before that, LogOptions' defaults apply. May be called again, for
// example once the task is known.
void StartLogging(const LogOptions& options);

// Writes the pending log when the process gets the signal of a crash. Also logs an uncaught
// exception and a failed SHOAL_CHECK. The process then ends as without this.
void WriteLogOnCrash();

// Waits at most `patience` until the log is written. Returns false if it is not. Call this before
// the process ends.
bool FlushLog(std::chrono::milliseconds patience);

// The number of lines lost so far.
uint64_t LostLogLines();

// The fields of a message: names and values.
using LogFields = std::vector<std::pair<std::string, std::string>>;

// Sends messages of all levels to `sink` instead of stderr. An empty sink restores stderr. The sink
// must not log.
using LogSink = std::function<void(const std::string& message, const LogFields& fields)>;
void SendLogTo(LogSink sink);

void LogInfo(const std::string& message, const LogFields& fields = {});
void LogWarning(const std::string& message, const LogFields& fields = {});
void LogError(const std::string& message, const LogFields& fields = {});

}  // namespace shoal
