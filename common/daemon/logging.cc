#include "common/daemon/logging.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/mutex.h"

namespace shoal {
namespace {

using nlohmann::json;

// The logger in use is spdlog's default one; its name says which format its lines have.
constexpr char kTextLogger[] = "text";
constexpr char kJsonLogger[] = "json";

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      break;
  }
  return spdlog::level::err;
}

// spdlog's patterns: %L is the level's first letter, %l its name, %e milliseconds, %v what is
// logged.
std::string TextPattern(const std::string& task) {
  return absl::StrCat("%Y-%m-%dT%H:%M:%S.%eZ %L ", task, " %v");
}

std::string JsonPattern(const std::string& task) {
  return absl::StrCat(
      "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",\"task\":", json(task).dump(), ",%v}");
}

// Control characters would let a peer's text move the cursor or forge lines.
std::string Printable(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    absl::StrAppend(&out, control ? absl::CHexEscape(std::string(1, c)) : std::string(1, c));
  }
  return out;
}

std::string Quote(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string FieldText(const std::string& value) {
  const bool bare = !value.empty() && value.find_first_of(" \"=\t\n") == std::string::npos;
  return bare ? Printable(value) : Quote(value);
}

std::string JsonBody(const std::string& message, const LogFields& fields) {
  std::string body = absl::StrCat("\"message\":", Quote(message));
  for (const auto& [key, value] : fields)
    absl::StrAppend(&body, ",", Quote(key), ":", Quote(value));
  return body;
}

// The logger of the process. Not spdlog's default one: what its library does to a shared pointer
// the thread sanitizer does not see.
struct CurrentLogger {
  Mutex mutex;
  std::shared_ptr<spdlog::logger> logger ABSL_GUARDED_BY(mutex);
};
CurrentLogger& Current() {
  static CurrentLogger* const current = new CurrentLogger;  // outlives every thread that logs
  return *current;
}
std::shared_ptr<spdlog::logger> GetLogger() {
  MutexLock lock(&Current().mutex);
  return Current().logger;
}

void Log(spdlog::level::level_enum level, const std::string& message, const LogFields& fields) {
  std::shared_ptr<spdlog::logger> logger = GetLogger();
  if (logger == nullptr) {
    StartLogging({});
    logger = GetLogger();
  }
  if (!logger->should_log(level)) return;
  if (logger->name() == kJsonLogger) {
    logger->log(level, spdlog::string_view_t(JsonBody(message, fields)));
    return;
  }
  std::vector<std::string> lines = absl::StrSplit(message, '\n');
  for (const auto& [key, value] : fields)
    absl::StrAppend(&lines.back(), " ", key, "=", FieldText(value));
  for (const std::string& line : lines) logger->log(level, spdlog::string_view_t(Printable(line)));
}

}  // namespace

void StartLogging(const LogOptions& options) {
  const bool as_json = options.format == LogFormat::kJson;
  auto logger = std::make_shared<spdlog::logger>(as_json ? kJsonLogger : kTextLogger,
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_pattern(as_json ? JsonPattern(options.task) : TextPattern(options.task),
                      spdlog::pattern_time_type::utc);
  logger->set_level(LevelOf(options.level));
  MutexLock lock(&Current().mutex);
  Current().logger = std::move(logger);
}

void LogInfo(const std::string& message, const LogFields& fields) {
  Log(spdlog::level::info, message, fields);
}
void LogWarning(const std::string& message, const LogFields& fields) {
  Log(spdlog::level::warn, message, fields);
}
void LogError(const std::string& message, const LogFields& fields) {
  Log(spdlog::level::err, message, fields);
}

}  // namespace shoal
