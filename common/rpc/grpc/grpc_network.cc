#include "common/rpc/grpc/grpc_network.h"

#include <grpcpp/server_builder.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/usable_cores.h"
#include "common/rpc/grpc/call/grpc_call.h"
#include "common/rpc/grpc/call/grpc_channels.h"
#include "common/rpc/grpc/call/grpc_client_call.h"
#include "common/rpc/grpc/call/write_budget.h"
#include "common/rpc/grpc/grpc_event_loop.h"
#include "common/rpc/grpc/grpc_server.h"
#include "common/rpc/grpc/library_log.h"
#include "common/rpc/grpc/memory_trim.h"
#include "common/rpc/grpc/name_lookups.h"
#include "common/rpc/grpc/transport_tuning.h"
#include "common/rpc/offload_threads.h"

namespace shoal {
namespace {

constexpr Time kTrimPeriod = std::chrono::seconds(10);
// The period of looks at the TLS directory, and at the certificates of open streams.
constexpr Time kTlsPeriod = std::chrono::seconds(1);

size_t CopyingThreads(const GrpcNetwork::Options& options) {
  if (options.copying_threads > 0) return options.copying_threads;
  // The other cores are for computation, and for ps on the same machine.
  return std::clamp(UsableCores() / 4, 1, 4);
}

class GrpcNetworkImpl final : public GrpcNetwork {
 public:
  explicit GrpcNetworkImpl(const Options& options);
  ~GrpcNetworkImpl() override { End(Time::zero()); }

  EventLoop* loop() override { return &loop_; }
  void Run(Time grace) override;
  Stats stats() const override;
  absl::Status CheckAccepting() const override {
    return server_ == nullptr ? absl::OkStatus() : server_->CheckAccepting();
  }

  std::unique_ptr<Stream> Open(const ServerAddress& server, const std::string& method,
                               StreamCallbacks callbacks) override;
  void Lend(std::shared_ptr<const SharedMemory> memory) override { lent_ = std::move(memory); }
  bool IsLookingUp(const std::string& address) const override {
    return IsLookedUp(HostOf(address));
  }
  void KeepFree(uint64_t bytes) override { room_->KeepFree(bytes); }
  absl::StatusOr<std::string> Listen(const std::string& address, Acceptor acceptor) override;

 private:
  void TrimMemory();
  void ReadTlsDirectory();
  void CheckCertificates();
  void CheckServers();
  void End(Time grace);
  void WindDown(Time deadline);
  bool has_streams() const {
    return !client_calls_.empty() || (server_ != nullptr && !server_->calls().empty());
  }

  const Options options_;
  // The builder makes the queue, even if there is never a server. So clients and server share one
  // queue.
  grpc::ServerBuilder builder_;
  GrpcEventLoop loop_;
  WriteBudget budget_;
  size_t sharing_ = 0;
  bool reading_tls_ = false;               // on the thread of tls_reads_
  OffloadThreads tls_reads_{"tls files"};  // its work uses loop_
  const std::shared_ptr<SharedMemoryRoom> room_;
  const GrpcCall::Limits limits_;

  MemoryTrim trim_{MemoryTrim::Options()};
  GrpcChannels channels_;
  std::shared_ptr<const SharedMemory> lent_;
  std::map<GrpcCall*, std::unique_ptr<GrpcClientCall>> client_calls_;
  std::unique_ptr<GrpcServer> server_;  // once it listens
};

GrpcNetworkImpl::GrpcNetworkImpl(const Options& options)
    : options_(options),
      loop_(builder_.AddCompletionQueue(), CopyingThreads(options)),
      budget_(options.max_writing_bytes, options.write_patience, &loop_),
      room_(std::make_shared<SharedMemoryRoom>(SharedMemoryRoom::Options{.warn = options.warn})),
      limits_{static_cast<size_t>(options.max_message_bytes),
              options.max_queued_bytes,
              options.max_queued_messages,
              &budget_,
              loop_.pending_reads(),
              &sharing_,
              options.max_shared_streams,
              room_},
      channels_({.max_message_bytes = options.max_message_bytes,
                 .keepalive = options.keepalive,
                 .tls = options.tls}) {}

void GrpcNetworkImpl::Run(Time grace) {
  loop_.CallAfter(kTrimPeriod, [this] { TrimMemory(); });
  if (options_.tls != nullptr) loop_.CallAfter(kTlsPeriod, [this] { CheckCertificates(); });
  loop_.Run();
  End(grace);
}

void GrpcNetworkImpl::TrimMemory() {
  trim_.Check();
  loop_.CallAfter(kTrimPeriod, [this] { TrimMemory(); });
}

// The directory may be on a disk that hangs. Then one read waits, and the network goes on checking
// with the files that it has. The read has a thread of its own: in Lane::kBrief, the renewal of the
// run's lock would wait behind it.
void GrpcNetworkImpl::ReadTlsDirectory() {
  if (std::exchange(reading_tls_, true)) return;
  tls_reads_.Add([this, tls = options_.tls] {
    auto content = std::make_shared<TlsSession::Content>(tls->Read());
    loop_.Post([this, content] {
      reading_tls_ = false;
      if (!options_.tls->Refresh(std::move(*content))) return;
      channels_.ForgetAll();
      CheckServers();
    });
  });
}

void GrpcNetworkImpl::CheckCertificates() {
  ReadTlsDirectory();
  CheckServers();
  if (server_ != nullptr) server_->CheckCertificates();
  loop_.CallAfter(kTlsPeriod, [this] { CheckCertificates(); });
}

void GrpcNetworkImpl::CheckServers() {
  // A callback may open streams, which need no check yet. No call is removed meanwhile.
  std::vector<GrpcClientCall*> calls;
  for (const auto& [key, call] : client_calls_) calls.push_back(call.get());
  for (GrpcClientCall* const call : calls) call->CheckServer(*options_.tls);
}

std::unique_ptr<Stream> GrpcNetworkImpl::Open(const ServerAddress& server,
                                              const std::string& method,
                                              StreamCallbacks callbacks) {
  auto call = std::make_unique<GrpcClientCall>(
      limits_, [this](GrpcCall* call) { client_calls_.erase(call); }, &channels_, server);
  GrpcClientCall* const opened = call.get();
  client_calls_.emplace(opened, std::move(call));
  return opened->Open(method, std::move(callbacks), loop_.queue(), lent_);
}

absl::StatusOr<std::string> GrpcNetworkImpl::Listen(const std::string& address, Acceptor acceptor) {
  SHOAL_ASSIGN_OR_RETURN(server_, GrpcServer::Listen(address, {.network = options_,
                                                               .limits = limits_,
                                                               .loop = &loop_,
                                                               .builder = &builder_,
                                                               .acceptor = std::move(acceptor)}));
  return server_->address();
}

GrpcNetwork::Stats GrpcNetworkImpl::stats() const {
  Stats stats;
  const auto add = [&stats](const GrpcCall& call) {
    ++stats.streams;
    stats.shared_streams += call.shares() ? 1 : 0;
    stats.queued_messages += call.queued_messages();
    stats.queued_bytes += call.queued_bytes();
  };
  for (const auto& [key, call] : client_calls_) add(*call);
  stats.rejected_handshakes = FailedHandshakes();
  if (server_ == nullptr) return stats;
  for (const auto& [number, call] : server_->calls()) add(*call);
  stats.unauthorized_streams = server_->unauthorized_streams();
  stats.rejected_handshakes += server_->rejected_handshakes();
  return stats;
}

void GrpcNetworkImpl::WindDown(Time deadline) {
  for (const auto& [key, call] : client_calls_) call->EndAfterQueue(absl::OkStatus());
  if (server_ != nullptr) server_->WindDown();
  while (has_streams() && loop_.HandleEvent(deadline)) {
  }
}

void GrpcNetworkImpl::End(Time grace) {
  if (!loop_.Close()) return;
  tls_reads_.Close();
  if (server_ != nullptr) server_->StopListening();
  const Time deadline = loop_.Now() + grace;
  for (const auto& [key, call] : client_calls_) call->Silence();
  if (server_ != nullptr) server_->Silence();
  if (grace > Time::zero()) WindDown(deadline);
  for (const auto& [key, call] : client_calls_) call->Break(absl::CancelledError("shutting down"));
  if (server_ != nullptr) server_->Cancel(deadline);
  // Remaining calls may start operations, and these need an open queue.
  while (!client_calls_.empty() || (server_ != nullptr && !server_->idle())) {
    loop_.HandleEvent(std::nullopt);
  }
  loop_.End();
}

}  // namespace

std::unique_ptr<GrpcNetwork> GrpcNetwork::Create(Options options) {
  TuneAllocatorForTransport();
  return std::make_unique<GrpcNetworkImpl>(options);
}

}  // namespace shoal
