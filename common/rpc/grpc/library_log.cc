#include "common/rpc/grpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include <atomic>
#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/rpc/admission/rejection_log.h"

namespace shoal {
namespace {

std::atomic<void (*)(const std::string&)> library_log = nullptr;

// gRPC logs this as an error in each handshake with an address of numbers, although no name is
// checked (TlsSession::ForChannel).
constexpr char kNoName[] = "No match found for server name";

// gRPC 1.51 begins its line about a handshake that OpenSSL ends with this. OpenSSL's reason
// follows. The line names no peer.
constexpr char kFailedHandshake[] = "Handshake failed with fatal error ";

// A reason of OpenSSL 3.0 that operators meet, and its meaning.
struct HandshakeReason {
  const char* reason;
  const char* words;
};
constexpr HandshakeReason kHandshakeReasons[] = {
    {"peer did not return a certificate", "a client shows no certificate; give it a --tls_dir"},
    {"bad signature", "a client shows a certificate without having its key"},
    {"no shared cipher", "a client does not speak TLS 1.3"},
    {"unsupported protocol", "a client does not speak TLS 1.3"},
    {"wrong version number", "the other end does not use TLS; give it a --tls_dir"},
    {"http request", "a client does not use TLS"},
    {"certificate verify failed",
     "a server shows a certificate that no CA in ca.crt has issued, or that has expired"},
};

std::atomic<uint64_t> failed_handshakes = 0;

RejectionLog& HandshakeLog() {
  static auto* const log = new RejectionLog(
      {.warn = [](const std::string& line) { library_log.load()(line); }, .what = "handshakes"});
  return *log;
}

void OnFailedHandshake(const std::string& reason) {
  ++failed_handshakes;
  std::string words;
  for (const HandshakeReason& known : kHandshakeReasons) {
    if (absl::StrContains(reason, known.reason)) words = absl::StrCat(known.words, " ");
  }
  HandshakeLog().Add(std::chrono::steady_clock::now().time_since_epoch(), reason,
                     absl::StrCat(kFailedHandshakeLine, words, "(", reason, ")"));
}

void LogOfGrpc(gpr_log_func_args* event) {
  const std::string message = event->message;
  if (message.starts_with(kNoName)) return;
  if (message.starts_with(kFailedHandshake)) {
    return OnFailedHandshake(message.substr(sizeof(kFailedHandshake) - 1));
  }
  library_log.load()(absl::StrCat("grpc: ", message));
}

void LogOfProtobuf(google::protobuf::LogLevel level, const char*, int, const std::string& message) {
  if (level > google::protobuf::LOGLEVEL_INFO)
    library_log.load()(absl::StrCat("protobuf: ", message));
}

}  // namespace

uint64_t FailedHandshakes() { return failed_handshakes; }

void SendLibraryLogTo(void (*log)(const std::string& message)) {
  library_log = log;
  gpr_set_log_function(LogOfGrpc);
  google::protobuf::SetLogHandler(LogOfProtobuf);
}

}  // namespace shoal
