#include "common/rpc/grpc/grpc_server.h"

#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/rpc/admission/receiving_limit.h"
#include "common/rpc/grpc/health_service.h"
#include "common/security/permissions.h"

namespace shoal {
namespace {

// Max time of a new client's handshake, and of a connection without a stream.
constexpr int kSilenceMs = 10'000;
constexpr int kIdleMs = 60'000;

// The max size of a message on a connection before its first stream is accepted.
constexpr uint64_t kMaxFirstMessageBytes = 64 << 10;

// Returns the identity and the serial, for RejectionLog.
std::string NameOf(const Certificate& certificate) {
  return absl::StrCat(certificate.identity.ToUri(), " ", certificate.serial);
}

void Configure(const GrpcNetwork::Options& options, grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(options.max_message_bytes);
  // Most of this memory is for incomplete messages.
  builder->SetResourceQuota(grpc::ResourceQuota("server").Resize(options.max_receiving_bytes));
  for (int algorithm = 1; algorithm < GRPC_COMPRESS_ALGORITHMS_COUNT; ++algorithm) {
    // A compressed message could grow beyond the max size.
    builder->SetCompressionAlgorithmSupportStatus(
        static_cast<grpc_compression_algorithm>(algorithm), false);
  }
  // Clients that respect this limit wait. ClientConnections rejects the streams of other clients
  // above twice this number. The factor is for streams that the client has ended and this server
  // has not.
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              static_cast<int>(options.max_streams_per_client));
  // Disables filters that no stream uses and that every message would pass. The filter for clients'
  // deadlines stays.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder->AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, options.keepalive.silence_ms);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.keepalive.answer_ms);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // No limit on the number of pings to a silent peer; gRPC's default is two.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Ends connections that do not complete the handshake or that have no stream.
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kSilenceMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
}

}  // namespace

// A reference to a server that may have ended: gRPC's threads may read after its end. Thread-safe.
class GrpcServer::Link {
 public:
  explicit Link(GrpcServer* server) : server_(server) {}
  void Cut() {
    MutexLock lock(&mutex_);
    server_ = nullptr;
  }
  void OnTooLong(int fd, uint64_t bytes) {
    MutexLock lock(&mutex_);
    if (server_ != nullptr) server_->RejectTooLong(fd, bytes);
  }

 private:
  Mutex mutex_;
  GrpcServer* server_ ABSL_GUARDED_BY(mutex_);
};

void GrpcServer::RejectedHandshakes::Add(const absl::Status& why) {
  ++count;
  const std::string text(why.message());
  log.Add(std::chrono::steady_clock::now().time_since_epoch(), text,
          absl::StrCat("rejected a handshake: ", text));
}

GrpcServer::GrpcServer(Options options)
    : options_(std::move(options)),
      link_(std::make_shared<Link>(this)),
      handshakes_(std::make_shared<RejectedHandshakes>(options_.network.warn)),
      connections_({.max_connections = ConnectionsWithinFileLimit(options_.network.max_connections),
                    .max_streams = 2 * options_.network.max_streams_per_client}),
      unauthorized_({.warn = options_.network.warn, .what = "streams"}) {}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Listen(const std::string& address,
                                                               Options options) {
  SHOAL_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Open(address));
  const std::shared_ptr<TlsSession> tls = options.network.tls;
  std::unique_ptr<GrpcServer> server(new GrpcServer(std::move(options)));
  std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials();
  if (tls != nullptr) {
    SHOAL_ASSIGN_OR_RETURN(
        credentials, tls->ForServer([handshakes = server->handshakes_](const absl::Status& why) {
          handshakes->Add(why);
        }));
  }
  if (!server->Start(std::move(socket), credentials)) {
    return absl::InternalError(
        absl::StrCat("cannot listen at ", address, ": gRPC did not start; its log says why"));
  }
  return server;
}

bool GrpcServer::Start(ListeningSocket socket,
                       const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  grpc::ServerBuilder& builder = *options_.builder;
  accepted_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  builder.RegisterAsyncGenericService(&service_);
  Configure(options_.network, &builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return false;
  admission_ = std::make_unique<StreamAdmission>(
      StreamAdmission::Options{.loop = options_.loop,
                               .connections = &connections_,
                               .address = socket.address(),
                               .max_streams = options_.network.max_streams,
                               .max_streams_per_client = options_.network.max_streams_per_client,
                               .warn = options_.network.warn});
  AwaitClient();
  listener_ = std::make_unique<ConnectionAcceptor>(
      std::move(socket),
      ConnectionAcceptor::Options{.connections = &connections_,
                                  .on_connection = [this](int fd) { OnConnection(fd); },
                                  .warn = options_.network.warn});
  return true;
}

void GrpcServer::OnConnection(int fd) {
  // Sets the same options as gRPC for connections that it accepts itself.
  const int on = 1;
  const auto lost_after_ms = static_cast<unsigned>(options_.network.keepalive.answer_ms);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost_after_ms, sizeof(lost_after_ms));
  // Under TLS, this end cannot read the frames. LimitDecryptedReads() reads them when they are
  // decrypted.
  if (options_.network.tls == nullptr) LimitFrames(fd);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd;
  accepted_->HandleNewConnection(&connection);
}

void GrpcServer::LimitFrames(int fd) {
  // The callbacks use no member of this object, because gRPC's threads may read after its end.
  ReceivingLimits limits = {.on_flood = [warn = options_.network.warn] {
    if (warn) warn("ended a connection: its client sends headers, or a message, without end");
  }};
  // Without a peer name, the streams of a connection are not known.
  if (!PeerOf(fd).empty()) {
    limits.on_too_long = [link = link_, fd](uint64_t bytes) { link->OnTooLong(fd, bytes); };
    limits.max_message_bytes = kMaxFirstMessageBytes;
  }
  LimitReceiving(fd, std::move(limits));
}

// Tells all streams of the connection. The stream of the message is not known, because gRPC does
// not show the numbers of its calls. But no stream of the connection accepts a message of this
// size.
void GrpcServer::RejectTooLong(int fd, uint64_t bytes) {
  const auto reject = [this, fd, bytes] {
    for (const auto& [number, call] : calls_) {
      if (connections_.Descriptor(call->connection()) == fd) call->RejectTooLong(bytes);
    }
    ResumeReading(fd);
  };
  // Posts through another thread. This may be the loop's thread, which does not see its own posts
  // while it waits for events.
  options_.loop->Offload(
      Lane::kCopies, [] {}, reject);
}

void GrpcServer::AwaitClient() {
  awaiting_ = std::make_unique<GrpcServerCall>(
      next_number_++, options_.limits, [this](GrpcCall* call) { Remove(call); },
      [this](GrpcServerCall* call) { OnClient(call); },
      [this](GrpcServerCall* call) { OnTalk(call); },
      [this](GrpcServerCall* call) { AllowMessagesOf(call); },
      [this](const GrpcServerCall& call, const absl::Status& why) {
        OnUnauthorized(call, NameOf(*call.client()), why);
      });
  awaiting_->Request(&service_, options_.loop->queue());
}

void GrpcServer::OnClient(GrpcServerCall* call) {
  calls_.emplace(call->number(), std::move(awaiting_));
  if (cancelling_) return call->Break(absl::CancelledError("shutting down"));
  AwaitClient();
  const absl::Status admitted = Admit(call);
  if (winding_down_) {
    call->Reject(absl::UnavailableError("shutting down"));
  } else if (!admitted.ok()) {
    call->Reject(admitted);
  } else if (IsHealthMethod(call->method())) {
    call->Accept(AcceptHealthCheck);
  } else {
    call->Accept([this, call](const std::string& method, std::unique_ptr<Stream> stream) {
      absl::StatusOr<StreamCallbacks> callbacks = options_.acceptor(method, std::move(stream));
      // Allows the method's messages before the first read. A rejected method allows none.
      if (callbacks.ok()) AllowMessagesOf(call);
      return callbacks;
    });
  }
}

absl::Status GrpcServer::Authorize(GrpcServerCall* call) {
  const TlsSession& tls = *options_.network.tls;
  absl::StatusOr<TlsSession::Peer> client = TlsSession::ClientOf(*call->auth_context());
  if (!client.ok()) {
    OnUnauthorized(*call, std::string(client.status().message()), client.status());
    return client.status();
  }
  absl::Status permitted = tls.CheckPeer(&*client);
  if (permitted.ok() && !IsHealthMethod(call->method())) {
    permitted = CheckPermitted(tls.own(), client->certificate.identity, call->method());
  }
  if (permitted.ok()) {
    call->set_client(*std::move(client));
  } else {
    OnUnauthorized(*call, NameOf(client->certificate), permitted);
  }
  return permitted;
}

void GrpcServer::CheckCertificates() {
  std::vector<std::pair<GrpcServerCall*, absl::Status>> ended;
  for (const auto& [number, call] : calls_) {
    if (call->tls_client() == nullptr) continue;
    absl::Status valid = options_.network.tls->CheckPeer(call->tls_client());
    if (!valid.ok()) ended.emplace_back(call.get(), std::move(valid));
  }
  for (const auto& [call, reason] : ended) call->Revoke(reason);
}

void GrpcServer::OnUnauthorized(const GrpcServerCall& call, const std::string& who,
                                const absl::Status& why) {
  ++unauthorized_streams_;
  // Not the text of `why`, which may have the time, or the index that is claimed. Not the names of
  // methods that are not there, which clients choose.
  const std::string method = absl::IsUnimplemented(why) ? "" : call.method();
  unauthorized_.Add(options_.loop->Now(),
                    absl::StrCat(absl::StatusCodeToString(why.code()), " ", method, " ", who),
                    absl::StrCat("rejected ", call.peer(), " at ", call.method(), ": ",
                                 std::string(why.message())));
}

absl::Status GrpcServer::Admit(GrpcServerCall* call) {
  if (options_.network.tls != nullptr) {
    SHOAL_RETURN_IF_ERROR(Authorize(call));
  }
  call->set_connection(connections_.Find(call->peer()));
  // The server always answers a health check.
  return admission_->Admit(
      {.number = call->number(),
       .connection = call->connection(),
       .always = IsHealthMethod(call->method())},
      [this](uint64_t number, const absl::Status& reason) { calls_.at(number)->Break(reason); });
}

void GrpcServer::OnTalk(GrpcServerCall* call) {
  // A health stream counts as silent, so that it gives way to others.
  if (IsHealthMethod(call->method())) return;
  admission_->SetTalks(call->number(), call->connection(), call->talks());
}

void GrpcServer::AllowMessagesOf(const GrpcServerCall* call) {
  AllowMessages(connections_.Descriptor(call->connection()), call->max_request_bytes());
}

void GrpcServer::Remove(GrpcCall* call) {
  if (call == awaiting_.get()) return awaiting_.reset();
  const auto* const removed = static_cast<GrpcServerCall*>(call);
  admission_->Remove(removed->number(), removed->connection());
  calls_.erase(removed->number());
}

void GrpcServer::StopListening() {
  link_->Cut();
  listener_->Stop();
}

void GrpcServer::Silence() {
  for (const auto& [number, call] : calls_) call->Silence();
}

void GrpcServer::WindDown() {
  winding_down_ = true;
  for (const auto& [number, call] : calls_)
    call->EndAfterQueue(absl::UnavailableError("shutting down"));
}

void GrpcServer::Cancel(Time deadline) {
  cancelling_ = true;
  for (const auto& [number, call] : calls_) call->Break(absl::CancelledError("shutting down"));
  // Closes connections without streams in order, and cuts them at the deadline.
  server_->Shutdown(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::microseconds>(deadline - options_.loop->Now()));
}

}  // namespace shoal
