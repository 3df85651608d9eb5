#include "tests/simulation/trace_log.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/log/logging.h"

namespace shoal {

TraceLog::TraceLog(World* world) {
  SendLogTo([world](const std::string& message, const LogFields& fields) {
    if (!world->tracing()) return;
    std::string text = message;
    for (const auto& [key, value] : fields) absl::StrAppend(&text, " ", key, "=", value);
    world->Trace("log", text);
  });
}

TraceLog::~TraceLog() {
  SendLogTo([](const std::string&, const LogFields&) {});
}

}  // namespace shoal
