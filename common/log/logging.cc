#include "common/log/logging.h"

#include <cctype>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/mutex.h"
#include "common/base/output_queue.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

using nlohmann::json;

// Max size of a message and of each field, which contain text from peers.
constexpr size_t kMaxMessageBytes = 16 << 10;
constexpr size_t kMaxFieldBytes = 4 << 10;

constexpr std::chrono::seconds kCrashPatience{2};

const char* NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      break;
  }
  return "error";
}

std::string Quote(const std::string& text, size_t max_bytes) {
  // Escapes everything but plain ASCII. This keeps text from controlling a terminal.
  const bool whole = text.size() <= max_bytes;
  return json(whole ? text : PrintableLines(text, max_bytes))
      .dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

std::string FieldText(const std::string& value) {
  const std::string shown = Printable(value, kMaxFieldBytes);
  const bool bare = !shown.empty() && shown.find_first_of(" \"=") == std::string::npos;
  return bare ? shown
              : json(shown).dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

std::string JsonLine(const std::string& time, LogLevel level, const std::string& task,
                     const std::string& message, const LogFields& fields) {
  std::string line = absl::StrCat("{\"time\":\"", time, "\",\"level\":\"", NameOf(level),
                                  "\",\"task\":", Quote(task, kMaxFieldBytes),
                                  ",\"message\":", Quote(message, kMaxMessageBytes));
  for (const auto& [key, value] : fields)
    absl::StrAppend(&line, ",", Quote(key, kMaxFieldBytes), ":", Quote(value, kMaxFieldBytes));
  return line + "}\n";
}

std::string TextLines(const std::string& time, LogLevel level, const std::string& task,
                      const std::string& message, const LogFields& fields) {
  const std::string prefix = absl::StrCat(
      time, " ", std::string(1, static_cast<char>(std::toupper(NameOf(level)[0]))), " ", task, " ");
  std::string lines = absl::StrReplaceAll(PrintableLines(message, kMaxMessageBytes),
                                          {{"\n", "\n" + prefix + "  "}});
  lines.insert(0, prefix);
  for (const auto& [key, value] : fields) absl::StrAppend(&lines, " ", key, "=", FieldText(value));
  return lines + "\n";
}

// The log of the process; outlives every thread that logs.
struct ProcessLog {
  Mutex mutex;
  LogOptions options ABSL_GUARDED_BY(mutex);
  LogSink sink ABSL_GUARDED_BY(mutex);
  OutputQueue queue{{.descriptor = 2, .thread_name = "log", .describe_loss = DescribeLoss}};

  std::string Format(LogLevel level, const std::string& message, const LogFields& fields)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const std::string time =
        absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
    return options.format == LogFormat::kJson
               ? JsonLine(time, level, options.task, message, fields)
               : TextLines(time, level, options.task, message, fields);
  }

  static std::string DescribeLoss(uint64_t lost);
};

ProcessLog& TheLog() {
  static ProcessLog* const log = new ProcessLog;
  return *log;
}

std::string ProcessLog::DescribeLoss(uint64_t lost) {
  ProcessLog& log = TheLog();
  MutexLock lock(&log.mutex);
  return log.Format(LogLevel::kWarning, "lines of this log are missing here: stderr was not read",
                    {{"lost", absl::StrCat(lost)}});
}

void Log(LogLevel level, const std::string& message, const LogFields& fields) {
  ProcessLog& log = TheLog();
  MutexLock lock(&log.mutex);
  if (log.sink) return log.sink(message, fields);
  if (level < log.options.level) return;
  log.queue.Write(log.Format(level, message, fields));
}

// SA_RESETHAND has restored the signal's default action. raise() therefore ends the process as
// without this handler.
void OnCrash(int signal) {
  TheLog().queue.FlushInSignalHandler(kCrashPatience);
  raise(signal);
}

[[noreturn]] void OnTerminate() {
  std::string what = "an uncaught exception";
  try {
    if (std::current_exception() == nullptr) what = "std::terminate was called";
    if (std::current_exception() != nullptr) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    absl::StrAppend(&what, ": ", error.what());
  } catch (...) {
  }
  LogError(what);
  std::abort();
}

}  // namespace

void StartLogging(const LogOptions& options) {
  ProcessLog& log = TheLog();
  MutexLock lock(&log.mutex);
  log.options = options;
}

void WriteLogOnCrash() {
  TheLog();  // starts its thread
  struct sigaction on_crash = {};
  on_crash.sa_handler = OnCrash;
  on_crash.sa_flags = SA_RESETHAND;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL})
    sigaction(signal, &on_crash, nullptr);
  std::set_terminate(OnTerminate);
  SetCheckReporter([](const std::string& text) { LogError(text); });
}

bool FlushLog(std::chrono::milliseconds patience) { return TheLog().queue.Flush(patience); }

uint64_t LostLogLines() { return TheLog().queue.lost(); }

void SendLogTo(LogSink sink) {
  ProcessLog& log = TheLog();
  MutexLock lock(&log.mutex);
  log.sink = std::move(sink);
}

void LogInfo(const std::string& message, const LogFields& fields) {
  Log(LogLevel::kInfo, message, fields);
}
void LogWarning(const std::string& message, const LogFields& fields) {
  Log(LogLevel::kWarning, message, fields);
}
void LogError(const std::string& message, const LogFields& fields) {
  Log(LogLevel::kError, message, fields);
}

}  // namespace shoal
