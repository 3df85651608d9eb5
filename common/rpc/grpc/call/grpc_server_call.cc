#include "common/rpc/grpc/call/grpc_server_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/rpc/message_wire.h"
#include "common/rpc/methods.h"
#include "common/rpc/shared/own_address.h"
#include "common/security/permissions.h"

namespace shoal {
namespace {

// Turns gRPC's "ipv4:127.0.0.1:4711" into "127.0.0.1:4711", and "ipv6:%5B::1%5D:4711" into
// "[::1]:4711".
std::string ReadablePeer(const std::string& peer) {
  std::string text = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  if (absl::StartsWith(text, "ipv4:") || absl::StartsWith(text, "ipv6:")) text.erase(0, 5);
  return text;
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace

GrpcServerCall::GrpcServerCall(uint64_t number, const Limits& limits, Remove remove,
                               OnRequested on_requested, OnTalk on_talk, OnTrusted on_trusted,
                               OnUnauthorized on_unauthorized)
    : GrpcCall(limits, std::move(remove)),
      number_(number),
      on_requested_(std::move(on_requested)),
      on_talk_(std::move(on_talk)),
      on_trusted_(std::move(on_trusted)),
      on_unauthorized_(std::move(on_unauthorized)),
      request_(this, [this](bool ok) { OnRequest(ok); }),
      finish_(this, [this](bool) { CloseIfOver(); }),
      over_(this, [this](bool) { CloseIfOver(); }) {}

void GrpcServerCall::Request(grpc::AsyncGenericService* service,
                             grpc::ServerCompletionQueue* queue) {
  // This tag returns only for a call that a client has opened. OnRequest() then counts it as
  // outstanding.
  context_.AsyncNotifyWhenDone(static_cast<CompletionTag*>(&over_));
  service->RequestCall(&context_, &call_, queue, queue, request_.Start());
}

void GrpcServerCall::OnRequest(bool ok) {
  if (!ok) return Close(absl::CancelledError("the server has ended"));
  over_.Start();
  peer_ = ReadablePeer(context_.peer());
  max_request_bytes_ = WithinNetworkLimit(TraitsOf(method()).max_request_bytes);
  on_requested_(this);
}

size_t GrpcServerCall::WithinNetworkLimit(size_t bytes) const {
  return std::min(bytes, limits().max_message_bytes);
}

void GrpcServerCall::TrustClient() {
  const size_t trusted = WithinNetworkLimit(TraitsOf(method()).max_trusted_request_bytes);
  if (trusted <= max_request_bytes_ || closed()) return;
  max_request_bytes_ = trusted;
  on_trusted_(this);
}

absl::Status GrpcServerCall::CheckClaim(int index) {
  if (!client_.has_value()) return absl::OkStatus();
  absl::Status permitted = CheckClaimedIndex(client_->certificate.identity, index);
  if (!permitted.ok()) on_unauthorized_(*this, permitted);
  return permitted;
}

absl::Status GrpcServerCall::TooLongError(uint64_t bytes) const {
  return absl::ResourceExhaustedError(absl::StrCat("a message of ", bytes, " bytes; ", method(),
                                                   " accepts at most ", max_request_bytes()));
}

void GrpcServerCall::RejectTooLong(uint64_t bytes) {
  if (bytes <= max_request_bytes()) return;
  Fail(TooLongError(bytes));
  // gRPC continues to read the message until it sends the end. So this breaks a call whose end has
  // to wait.
  if (!end_started()) Break(TooLongError(bytes));
}

StreamCallbacks GrpcServerCall::WithLengthCheck(StreamCallbacks callbacks) {
  callbacks.on_message = [this, on_message = std::move(callbacks.on_message)](Message message) {
    const size_t bytes = EncodedSize(message);
    if (bytes > max_request_bytes_) return Fail(TooLongError(bytes));
    if (on_message) on_message(std::move(message));
    // If a message makes no sense, the owner has ended the stream by now.
    SetTalks(open());
  };
  return callbacks;
}

void GrpcServerCall::SetTalks(bool talks) {
  if (std::exchange(talks_, talks) != talks) on_talk_(this);
}

void GrpcServerCall::Accept(const Network::Acceptor& acceptor) {
  deciding_ = true;
  absl::StatusOr<StreamCallbacks> callbacks = acceptor(context_.method(), MakeHandle(peer_));
  deciding_ = false;
  if (!callbacks.ok()) return Reject(callbacks.status());
  if (has_handle()) {
    set_callbacks(WithLengthCheck(*std::move(callbacks)));
  } else if (!end()) {
    return OnDropped();
  }
  OpenShared();
  StartMessages();
}

void GrpcServerCall::OpenShared() {
  const auto offer = context_.client_metadata().find(kSharedPayloadsKey);
  if (!TraitsOf(method()).shares_payloads || offer == context_.client_metadata().end()) return;
  if (*limits().sharing == limits().max_sharing || !IsOwnAddress(peer_)) return;
  set_shared(SharedPayloads::Open({offer->second.data(), offer->second.size()}, limits().room));
  if (shared() == nullptr) return;
  ++*limits().sharing;
  context_.AddInitialMetadata(kSharedPayloadsKey, shared()->answer());
  shared()->StartPlacing(shared()->answer());
}

void GrpcServerCall::ReleaseShared() {
  if (shared() == nullptr) return;
  set_shared(nullptr);
  --*limits().sharing;
}

void GrpcServerCall::Reject(const absl::Status& reason) {
  DropMessages();
  EndAfterQueue(reason);
  StartMessages();
}

void GrpcServerCall::Revoke(const absl::Status& reason) {
  if (end()) return Break(reason);
  DropSources();
  Fail(reason);
}

void GrpcServerCall::StartRead(grpc::ByteBuffer* buffer, void* tag) { call_.Read(buffer, tag); }

void GrpcServerCall::StartWrite(const grpc::ByteBuffer& buffer, void* tag) {
  call_.Write(buffer, tag);
}

void GrpcServerCall::Cancel() { context_.TryCancel(); }

void GrpcServerCall::StartEnd(const absl::Status& status) {
  call_.Finish(ToGrpc(status), finish_.Start());
}

void GrpcServerCall::OnReadsEnded() {
  // The client has sent its last message, or is gone; over_ tells which.
  if (!NotifyHalfClosed()) EndAfterQueue(absl::OkStatus());
  SetTalks(talks_ && open());
}

void GrpcServerCall::Finish(absl::Status status) {
  DropMessages();
  EndAfterQueue(std::move(status));
  SetTalks(false);
}

void GrpcServerCall::OnDropped() {
  // An acceptor that rejects a call usually drops the stream before it returns.
  if (!deciding_) Break(absl::CancelledError("the stream was dropped"));
}

void GrpcServerCall::Fail(absl::Status error) { Finish(std::move(error)); }

void GrpcServerCall::CloseIfOver() {
  if (over_.outstanding() || finish_.outstanding()) return;
  SetTalks(false);
  ReleaseShared();
  if (broken()) return Close(*broken());
  if (context_.IsCancelled()) {
    return Close(absl::UnavailableError(
        absl::StrCat(peer_, ": the client is gone or has dropped the stream")));
  }
  Close(end().value_or(absl::OkStatus()));
}

}  // namespace shoal
