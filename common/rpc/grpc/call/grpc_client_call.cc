#include "common/rpc/grpc/call/grpc_client_call.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// gRPC 1.51's messages about a connection to a server that does not speak gRPC.
constexpr const char* kNotGrpcEndings[] = {": Trying to connect an http1.x server",
                                           ": Failed parsing HTTP/2", ": OK"};
constexpr char kClosedEnding[] = ": Socket closed";
constexpr const char* kClosedEndings[] = {kClosedEnding, "Connection reset by peer", "Broken pipe"};
constexpr char kPlainEnding[] = ":wrong version number";
constexpr char kVerifyEnding[] = ":certificate verify failed";
constexpr char kNoAnswerEnding[] = ": connection attempt timed out before receiving SETTINGS frame";

// Returns a short reason for gRPC's message. That message also has the name lookup and all tried
// addresses; only its last part has the error. `closed` is the reason of a server that closes the
// connection after the handshake; nothing if no handshake has ended.
std::string Reason(const std::string& message, const std::optional<std::string>& closed) {
  const char* what = nullptr;
  if (message.starts_with("DNS resolution failed")) what = "the name cannot be looked up";
  if (message.starts_with("failed to connect to all addresses")) what = "cannot be reached";
  if (what == nullptr) return message;
  for (const char* ending : kNotGrpcEndings) {
    if (message.ends_with(ending)) {
      return "answers, but does not speak gRPC: another program uses this port";
    }
  }
  if (message.ends_with(kPlainEnding)) {
    return "does not use TLS: give the server there a --tls_dir, or this end none";
  }
  if (message.ends_with(kVerifyEnding)) {
    return "shows a certificate that does not verify: no CA in ca.crt of this end has issued it, "
           "or "
           "it has expired, or the clock of this machine is wrong; try `shoal cert check` there";
  }
  for (const char* ending : kClosedEndings) {
    if (closed.has_value() && message.ends_with(ending)) return *closed;
  }
  if (message.ends_with(kClosedEnding)) {
    return "closes each new connection: one side may use TLS (--tls_dir) and the other not";
  }
  if (message.ends_with(kNoAnswerEnding)) {
    return "accepts the connection, but does not answer: it hangs, or another program uses this "
           "port";
  }
  const size_t last = message.rfind(": ");
  return what + (last == std::string::npos ? "" : message.substr(last));
}

}  // namespace

GrpcClientCall::GrpcClientCall(const Limits& limits, Remove remove, GrpcChannels* channels,
                               ServerAddress server)
    : GrpcCall(limits, std::move(remove)),
      channels_(channels),
      server_(std::move(server)),
      start_(this, [this](bool ok) { OnStarted(ok); }),
      writes_done_(this, [](bool) {}),
      status_read_(this, [this](bool) { OnStatus(); }) {}

std::unique_ptr<Stream> GrpcClientCall::Open(const std::string& method, StreamCallbacks callbacks,
                                             grpc::CompletionQueue* queue,
                                             std::shared_ptr<const SharedMemory> lent) {
  set_callbacks(std::move(callbacks));
  channel_ = channels_->Get(server_, method);
  if (TraitsOf(method).shares_payloads) {
    set_shared(SharedPayloads::Create(std::move(lent), limits().room));
    if (shared() != nullptr) context_.AddMetadata(kSharedPayloadsKey, shared()->offer());
  }
  call_ = grpc::GenericStub(channel_.channel).PrepareCall(&context_, method, queue);
  call_->StartCall(start_.Start());
  return MakeHandle(server_.address);
}

// New files of this process may make a stream outdated and its server untrusted at the same time,
// most of all a ca.crt without the former CA. The owner then has until the next check to end the
// stream where nothing is lost.
void GrpcClientCall::CheckServer(const TlsSession& tls) {
  const absl::Status valid = tls.CheckPeer(channel_.server.get());
  const bool outdated = tls.IsOutdated(*channel_.server);
  if (!valid.ok() && (!outdated || told_outdated_)) return Break(valid);
  if (!outdated) return;
  told_outdated_ = true;
  // Otherwise the next stream would use the connection of this one.
  channels_->Forget(server_.address, channel_.channel.get());
  NotifyOutdated();
}

std::optional<std::string> GrpcClientCall::ClosedReason() const {
  if (channel_.server == nullptr) return std::nullopt;
  const TlsSession::Server& server = *channel_.server;
  MutexLock lock(&server.mutex);
  if (!server.peer.has_value()) return std::nullopt;
  return channels_->tls()->ClosedBy(server.peer->certificate);
}

void GrpcClientCall::OnStarted(bool ok) {
  if (!ok) return OnReadsEnded();
  StartMessages();
}

void GrpcClientCall::StartRead(grpc::ByteBuffer* buffer, void* tag) { call_->Read(buffer, tag); }

void GrpcClientCall::StartWrite(const grpc::ByteBuffer& buffer, void* tag) {
  call_->Write(buffer, tag);
}

void GrpcClientCall::Cancel() { context_.TryCancel(); }

void GrpcClientCall::StartEnd(const absl::Status&) { call_->WritesDone(writes_done_.Start()); }

void GrpcClientCall::OnReadsEnded() { call_->Finish(&status_, status_read_.Start()); }

void GrpcClientCall::Finish(absl::Status status) {
  if (status.ok()) return EndAfterQueue(std::move(status));
  Break(status);
}

void GrpcClientCall::OnDropped() { Break(absl::CancelledError("the stream was dropped")); }

void GrpcClientCall::Fail(absl::Status error) { Break(error); }

void GrpcClientCall::OnFirstMessage() {
  if (shared() == nullptr) return;
  const auto& metadata = context_.GetServerInitialMetadata();
  const auto answer = metadata.find(kSharedPayloadsKey);
  if (answer == metadata.end()) return set_shared(nullptr);
  shared()->StartPlacing({answer->second.data(), answer->second.size()});
}

void GrpcClientCall::OnStatus() {
  if (broken()) return Close(*broken());
  const auto code = static_cast<absl::StatusCode>(status_.error_code());
  if (code == absl::StatusCode::kUnavailable)
    channels_->Forget(server_.address, channel_.channel.get());
  if (code == absl::StatusCode::kCancelled) {
    // This end has not cancelled, so the server has dropped the stream.
    return Close(
        absl::UnavailableError(absl::StrCat(server_.address, ": the stream was dropped there")));
  }
  if (code == absl::StatusCode::kUnavailable) {
    return Close(absl::UnavailableError(
        absl::StrCat(server_.address, ": ", Reason(status_.error_message(), ClosedReason()))));
  }
  Close(absl::Status(code, status_.error_message()));
}

}  // namespace shoal
