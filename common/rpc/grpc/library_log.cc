#include "common/rpc/grpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <atomic>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

std::atomic<void (*)(const std::string&)> library_log = nullptr;

// gRPC logs this as an error in each handshake with an address of numbers, although no name is
// checked (TlsSession::ForChannel).
constexpr char kNoName[] = "No match found for server name";

void LogOfGrpc(gpr_log_func_args* event) {
  if (std::string_view(event->message).starts_with(kNoName)) return;
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
