#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/admission/client_connections.h"
#include "common/rpc/admission/connection_acceptor.h"
#include "common/rpc/admission/listening_socket.h"
#include "common/rpc/admission/rejection_log.h"
#include "common/rpc/admission/stream_admission.h"
#include "common/rpc/grpc/call/grpc_server_call.h"
#include "common/rpc/grpc/grpc_event_loop.h"
#include "common/rpc/grpc/grpc_network.h"

namespace shoal {

// The server of a network: admits the connections of clients and their streams. Its owner ends it
// in this order:
//
//   StopListening() ── Silence() ── WindDown(), for a graceful end ── Cancel() ──▶ idle()
//
// Loop thread only, except CheckAccepting().
class GrpcServer {
 public:
  struct Options {
    GrpcNetwork::Options network;
    GrpcCall::Limits limits;
    GrpcEventLoop* loop = nullptr;           // must outlive the server
    grpc::ServerBuilder* builder = nullptr;  // has made the loop's queue; for this server alone
    Network::Acceptor acceptor;
  };
  // Starts a server that listens at `address`. Errors as of Network::Listen().
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Listen(const std::string& address,
                                                            Options options);

  // The address, with the actual port.
  const std::string& address() const { return listener_->address(); }
  // See GrpcNetwork::CheckAccepting(). Any thread.
  absl::Status CheckAccepting() const { return listener_->CheckAccepting(); }
  using Calls = std::map<uint64_t, std::unique_ptr<GrpcServerCall>>;
  // The calls that clients have opened, by number.
  const Calls& calls() const { return calls_; }

  // Accepts no more connections. New streams may still come on the open ones.
  void StopListening();
  // Ends the streams of clients whose certificate is not valid any more. With TLS only.
  void CheckCertificates();
  // The number of streams that were rejected for their client's certificate, at their begin or for
  // the index that the client claims.
  uint64_t unauthorized_streams() const { return unauthorized_streams_; }
  // The number of clients that ended at the handshake, because no CA of ca.crt has issued their
  // certificate.
  uint64_t rejected_handshakes() const { return handshakes_->count; }
  // Stops all callbacks of the open streams.
  void Silence();
  // Ends all streams when their queues are sent, and rejects new ones.
  void WindDown();
  // Cancels all streams. Cuts connections that remain at `deadline`.
  void Cancel(Time deadline);
  // Whether all calls have ended, including the one that awaits a client.
  bool idle() const { return calls_.empty() && awaiting_ == nullptr; }

 private:
  class Link;
  // Counts and logs clients that end at the handshake. gRPC's threads may add some after the
  // server's end. Thread-safe.
  struct RejectedHandshakes {
    explicit RejectedHandshakes(std::function<void(const std::string&)> warn)
        : log({.warn = std::move(warn), .what = "handshakes"}) {}
    void Add(const absl::Status& why);

    std::atomic<uint64_t> count = 0;
    RejectionLog log;
  };

  explicit GrpcServer(Options options);
  // Returns false if gRPC does not start.
  bool Start(ListeningSocket socket, const std::shared_ptr<grpc::ServerCredentials>& credentials);
  // Passes a client's connection to gRPC. On the acceptor's thread.
  void OnConnection(int fd);
  // Makes gRPC stop reading a connection whose frames or messages are too long (ReceivingLimits).
  void LimitFrames(int fd);
  // A message of this size begins that no stream of the connection accepts. On any thread, even the
  // loop's thread while it waits for events.
  void RejectTooLong(int fd, uint64_t bytes);
  // Waits for the next client that opens a call.
  void AwaitClient();
  void OnClient(GrpcServerCall* call);
  absl::Status Admit(GrpcServerCall* call);
  // Returns OK if the client's certificate permits the call. Sets the certificate of the call.
  absl::Status Authorize(GrpcServerCall* call);
  // Counts and logs a call that is rejected. `who` is the client's certificate, or what it lacks.
  void OnUnauthorized(const GrpcServerCall& call, const std::string& who, const absl::Status& why);
  void OnTalk(GrpcServerCall* call);
  // Lets the call's connection send messages of the size that the call accepts.
  void AllowMessagesOf(const GrpcServerCall* call);
  void Remove(GrpcCall* call);

  const Options options_;
  const std::shared_ptr<Link> link_;
  const std::shared_ptr<RejectedHandshakes> handshakes_;
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> accepted_;
  ClientConnections connections_;
  std::unique_ptr<StreamAdmission> admission_;  // both from Start() on
  std::unique_ptr<ConnectionAcceptor> listener_;
  Calls calls_;
  std::unique_ptr<GrpcServerCall> awaiting_;  // the call that awaits a client
  uint64_t next_number_ = 0;
  uint64_t unauthorized_streams_ = 0;
  RejectionLog unauthorized_;
  bool winding_down_ = false;  // streams end after their queues
  bool cancelling_ = false;    // streams are cancelled
};

}  // namespace shoal
