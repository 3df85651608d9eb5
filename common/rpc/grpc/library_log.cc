#include "common/rpc/grpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <atomic>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

std::atomic<void (*)(const std::string&)> library_log = nullptr;

void LogOfGrpc(gpr_log_func_args* event) {
  library_log.load()(absl::StrCat("grpc: ", event->message));
}

void LogOfProtobuf(google::protobuf::LogLevel level, const char*, int, const std::string& message) {
  if (level > google::protobuf::LOGLEVEL_INFO)
    library_log.load()(absl::StrCat("protobuf: ", message));
}

}  // namespace

void SendLibraryLogTo(void (*log)(const std::string& message)) {
  library_log = log;
  gpr_set_log_function(LogOfGrpc);
  google::protobuf::SetLogHandler(LogOfProtobuf);
}

}  // namespace shoal
