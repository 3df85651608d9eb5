#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/rpc/grpc/call/grpc_call.h"
#include "common/rpc/tls/tls_session.h"
#include "common/security/certificate.h"

namespace shoal {

// The server's end of a stream. It begins when the server waits for a client. Operations: the
// request; reads and writes; the finish; and the notice that the call is over. Only the notice
// tells whether the call was cancelled or the client is gone.
class GrpcServerCall : public GrpcCall {
 public:
  // Called when a client has opened this call. The network then calls Accept() or Reject().
  using OnRequested = std::function<void(GrpcServerCall*)>;
  // Called when talks() changes.
  using OnTalk = std::function<void(GrpcServerCall*)>;
  // Called when max_request_bytes() grows.
  using OnTrusted = std::function<void(GrpcServerCall*)>;
  // Called when the client's certificate does not permit what a message asks for.
  using OnUnauthorized = std::function<void(const GrpcServerCall&, const absl::Status&)>;

  // `number` counts the calls of a network, in the order in which clients open them.
  GrpcServerCall(uint64_t number, const Limits& limits, Remove remove, OnRequested on_requested,
                 OnTalk on_talk, OnTrusted on_trusted, OnUnauthorized on_unauthorized);

  void Request(grpc::AsyncGenericService* service, grpc::ServerCompletionQueue* queue);
  uint64_t number() const { return number_; }
  const std::string& method() const { return context_.method(); }
  const std::string& peer() const { return peer_; }
  // The network's number for the client's connection; 0: not known.
  uint64_t connection() const { return connection_; }
  void set_connection(uint64_t connection) { connection_ = connection; }
  // The client and its certificate, once they are checked. Null without TLS.
  TlsSession::Peer* tls_client() { return client_.has_value() ? &*client_ : nullptr; }
  const Certificate* client() const override {
    return client_.has_value() ? &client_->certificate : nullptr;
  }
  void set_client(TlsSession::Peer client) { client_ = std::move(client); }
  // Returns gRPC's record of the client's identity. Valid from the request on.
  std::shared_ptr<const grpc::AuthContext> auth_context() const { return context_.auth_context(); }
  // Whether the client has sent a message, and neither the client nor the owner has ended the
  // stream.
  bool talks() const { return talks_; }
  // The max size of one message to this method. It is larger once the owner trusts the client.
  size_t max_request_bytes() const { return max_request_bytes_; }
  // Ends the call if it accepts no message of this size. Called when such a message begins on the
  // connection.
  void RejectTooLong(uint64_t bytes);
  void Accept(const Network::Acceptor& acceptor);
  void Reject(const absl::Status& reason);
  // Ends an accepted call, and tells the client why. The owner gets `reason`, too. Cancels a call
  // that is ending already, because its client may delay the end.
  void Revoke(const absl::Status& reason);

 private:
  void StartRead(grpc::ByteBuffer* buffer, void* tag) override;
  void StartWrite(const grpc::ByteBuffer& buffer, void* tag) override;
  void Cancel() override;
  void StartEnd(const absl::Status& status) override;
  void OnReadsEnded() override;
  void Finish(absl::Status status) override;
  void OnDropped() override;
  void TrustClient() override;
  absl::Status CheckClaim(int index) override;
  void Fail(absl::Status error) override;
  void OnRequest(bool ok);
  void CloseIfOver();
  void SetTalks(bool talks);
  // Opens the memory that the client offers, if the client is on this machine.
  void OpenShared();
  // Releases the shared memory and its place, which another client may take.
  void ReleaseShared();
  absl::Status TooLongError(uint64_t bytes) const;
  // Returns `bytes`, at most the max size of the network.
  size_t WithinNetworkLimit(size_t bytes) const;
  // Returns the callbacks with a check: a message that is too long for the method ends the call.
  StreamCallbacks WithLengthCheck(StreamCallbacks callbacks);

  const uint64_t number_;
  const OnRequested on_requested_;
  const OnTalk on_talk_;
  const OnTrusted on_trusted_;
  const OnUnauthorized on_unauthorized_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter call_{&context_};
  std::string peer_;
  size_t max_request_bytes_ = 0;  // from the client's request on
  uint64_t connection_ = 0;
  std::optional<TlsSession::Peer> client_;
  bool deciding_ = false;  // the acceptor is running
  bool talks_ = false;
  Operation request_;
  Operation finish_;
  Operation over_;
};

}  // namespace shoal
