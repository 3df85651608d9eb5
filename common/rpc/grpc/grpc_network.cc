#include "common/rpc/grpc/grpc_network.h"

#include <grpc/support/time.h>
#include <grpcpp/alarm.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/usable_cores.h"
#include "common/rpc/admission/client_connections.h"
#include "common/rpc/admission/connection_acceptor.h"
#include "common/rpc/admission/listening_socket.h"
#include "common/rpc/admission/receiving_limit.h"
#include "common/rpc/grpc/call/grpc_call.h"
#include "common/rpc/grpc/call/grpc_client_call.h"
#include "common/rpc/grpc/call/grpc_server_call.h"
#include "common/rpc/grpc/call/pending_reads.h"
#include "common/rpc/grpc/call/write_budget.h"
#include "common/rpc/grpc/grpc_channels.h"
#include "common/rpc/grpc/health_service.h"
#include "common/rpc/grpc/memory_trim.h"
#include "common/rpc/grpc/name_lookups.h"
#include "common/rpc/grpc/transport_tuning.h"
#include "common/rpc/offload_threads.h"
#include "common/rpc/timer_queue.h"

namespace shoal {
namespace {

// Max time of a new client's handshake, and of a connection without a stream.
constexpr int kSilenceMs = 10'000;
constexpr int kIdleMs = 60'000;

// Logs at most this often that silent streams are ended for others.
constexpr Time kCrowdedPeriod = std::chrono::minutes(1);

constexpr Time kTrimPeriod = std::chrono::seconds(10);

size_t CopyingThreads(const GrpcNetwork::Options& options) {
  if (options.copying_threads > 0) return options.copying_threads;
  // The other cores are for computation, and for ps on the same machine.
  return std::clamp(UsableCores() / 4, 1, 4);
}

using Calls = std::map<GrpcCall*, std::unique_ptr<GrpcCall>>;

gpr_timespec ToGrpc(Time time) {
  // Both clocks are CLOCK_MONOTONIC, but the conversion does not rely on it.
  const Time wait = time - std::chrono::steady_clock::now().time_since_epoch();
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(wait.count(), GPR_TIMESPAN));
}

// The max size of a message on a connection before its first stream is accepted.
constexpr uint64_t kMaxFirstMessageBytes = 64 << 10;

class GrpcNetworkImpl;

// A reference to a network that may have ended: gRPC's threads may read after its end. Thread-safe.
class NetworkLink {
 public:
  explicit NetworkLink(GrpcNetworkImpl* network) : network_(network) {}
  void Cut() {
    MutexLock lock(&mutex_);
    network_ = nullptr;
  }
  void OnTooLong(int fd, uint64_t bytes);

 private:
  Mutex mutex_;
  GrpcNetworkImpl* network_ ABSL_GUARDED_BY(mutex_);
};

class GrpcNetworkImpl : public GrpcNetwork {
 public:
  explicit GrpcNetworkImpl(const Options& options);
  ~GrpcNetworkImpl() override { End(Time::zero()); }

  Time Now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  TimerId CallAfter(Time delay, std::function<void()> callback) override {
    return timers_.Add(Now() + delay, std::move(callback));
  }
  void CancelTimer(TimerId timer) override { timers_.Cancel(timer); }
  void Post(std::function<void()> callback) override;
  void Offload(Lane lane, std::function<void()> work, std::function<void()> done) override;
  void Stop() override { stopped_ = true; }
  void Run(Time grace) override;
  Stats stats() const override;
  absl::Status CheckAccepting() const override {
    return listener_ == nullptr ? absl::OkStatus() : listener_->CheckAccepting();
  }

  std::unique_ptr<Stream> Open(const std::string& address, const std::string& method,
                               StreamCallbacks callbacks) override;
  void Lend(std::shared_ptr<const SharedMemory> memory) override { lent_ = std::move(memory); }
  bool LooksUp(const std::string& address) const override { return IsLookedUp(HostOf(address)); }
  void KeepFree(uint64_t bytes) override { room_->KeepFree(bytes); }
  absl::StatusOr<std::string> Listen(const std::string& address, Acceptor acceptor) override;

  // On any thread, even the loop's thread while it waits for events.
  void RejectTooLong(int fd, uint64_t bytes);

 private:
  // Wakes the loop for posted callbacks.
  class Wake : public CompletionTag {
   public:
    explicit Wake(GrpcNetworkImpl* network) : network_(network) {}
    void Complete(bool ok) override;

   private:
    GrpcNetworkImpl* const network_;
  };

  void RunPosted();
  void TrimMemory();
  // Waits until `deadline` for one event and handles it. Returns false if there is none.
  bool HandleEvent(gpr_timespec deadline);
  gpr_timespec NextDeadline() const;
  // Waits for the next client that opens a call.
  void AwaitClient();
  void OnClient(GrpcServerCall* call);
  // Takes a place for the client's stream, and may end an older silent stream for it. Error: why
  // there is no place.
  absl::Status TakePlace(GrpcServerCall* call);
  void OnTalk(GrpcServerCall* call);
  void RemoveServerCall(GrpcCall* call);
  // On the acceptor's thread.
  void OnConnection(int fd);
  void End(Time grace);
  void WindDown(Time deadline);

  const Options options_;
  WriteBudget budget_;
  PendingReads reads_;
  size_t sharing_ = 0;
  const std::shared_ptr<SharedMemoryRoom> room_;
  const GrpcCall::Limits limits_;
  // The builder makes the queue, even if there is never a server. So clients and server share one
  // queue.
  grpc::ServerBuilder builder_;
  const std::unique_ptr<grpc::ServerCompletionQueue> queue_;

  Mutex mutex_;
  std::vector<std::function<void()>> posted_ ABSL_GUARDED_BY(mutex_);
  bool waking_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Alarm alarm_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> has_posted_{false};
  std::atomic<std::thread::id> loop_thread_{};
  Wake wake_{this};

  MemoryTrim trim_{MemoryTrim::Options()};
  bool stopped_ = false;
  bool winding_down_ = false;  // streams end after their queues
  bool cancelling_ = false;    // streams are cancelled
  TimerQueue timers_;
  GrpcChannels channels_;
  std::shared_ptr<const SharedMemory> lent_;
  Acceptor acceptor_;
  const std::shared_ptr<NetworkLink> link_ = std::make_shared<NetworkLink>(this);
  grpc::AsyncGenericService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> accepted_;
  ClientConnections connections_;
  std::unique_ptr<ConnectionAcceptor> listener_;  // once it listens
  Calls client_calls_;
  Calls server_calls_;
  uint64_t next_server_call_ = 0;
  // The server_calls_ that do not talk and are not being ended for others, by number.
  std::map<uint64_t, GrpcServerCall*> silent_;
  size_t talking_ = 0;  // number of server_calls_ that talk
  Time crowded_said_ = -kCrowdedPeriod;
  // The call that awaits a client.
  std::unique_ptr<GrpcCall> awaiting_;
  OffloadThreads offload_{"files"};
  OffloadThreads offload_brief_{"brief files"};
  OffloadThreads offload_copies_;
};

GrpcNetworkImpl::GrpcNetworkImpl(const Options& options)
    : options_(options),
      budget_(options.max_writing_bytes, options.write_patience, this),
      room_(std::make_shared<SharedMemoryRoom>(SharedMemoryRoom::Options{.warn = options.warn})),
      limits_{static_cast<size_t>(options.max_message_bytes),
              options.max_queued_bytes,
              options.max_queued_messages,
              &budget_,
              &reads_,
              &sharing_,
              options.max_shared_streams,
              room_},
      queue_(builder_.AddCompletionQueue()),
      channels_(options.max_message_bytes, options.keepalive),
      connections_({.max_connections = ConnectionsWithinFileLimit(options.max_connections),
                    .max_streams = 2 * options.max_streams_per_client}),
      offload_copies_("copies", CopyingThreads(options)) {}

void GrpcNetworkImpl::Post(std::function<void()> callback) {
  MutexLock lock(&mutex_);
  if (ended_) return;
  posted_.push_back(std::move(callback));
  has_posted_ = true;
  // The loop checks posted_ before it waits, so its own thread need not wake it.
  if (waking_ || loop_thread_ == std::this_thread::get_id()) return;
  waking_ = true;
  alarm_.Set(queue_.get(), gpr_inf_past(GPR_CLOCK_MONOTONIC), static_cast<CompletionTag*>(&wake_));
}

void GrpcNetworkImpl::Wake::Complete(bool) {
  MutexLock lock(&network_->mutex_);
  network_->waking_ = false;
}

void GrpcNetworkImpl::Offload(Lane lane, std::function<void()> work, std::function<void()> done) {
  OffloadThreads& threads = lane == Lane::kFiles   ? offload_
                            : lane == Lane::kBrief ? offload_brief_
                                                   : offload_copies_;
  threads.Add([this, work = std::move(work), done = std::move(done)] {
    work();
    Post(done);
  });
}

void GrpcNetworkImpl::Run(Time grace) {
  loop_thread_ = std::this_thread::get_id();
  CallAfter(kTrimPeriod, [this] { TrimMemory(); });
  while (!stopped_) {
    RunPosted();
    // Timers that these callbacks set wait for the next turn.
    const Time now = Now();
    while (!stopped_) {
      const std::function<void()> due = timers_.TakeDue(now);
      if (due == nullptr) break;
      due();
    }
    if (!stopped_) HandleEvent(NextDeadline());
  }
  End(grace);
}

void GrpcNetworkImpl::TrimMemory() {
  trim_.Look();
  CallAfter(kTrimPeriod, [this] { TrimMemory(); });
}

void GrpcNetworkImpl::RunPosted() {
  if (!has_posted_) return;
  std::vector<std::function<void()>> posted;
  {
    MutexLock lock(&mutex_);
    posted.swap(posted_);
    has_posted_ = false;
  }
  for (const auto& callback : posted) {
    if (stopped_) return;
    callback();
  }
}

gpr_timespec GrpcNetworkImpl::NextDeadline() const {
  if (has_posted_) return gpr_inf_past(GPR_CLOCK_MONOTONIC);
  const std::optional<Time> due = timers_.next_due();
  return due ? ToGrpc(*due) : gpr_inf_future(GPR_CLOCK_MONOTONIC);
}

bool GrpcNetworkImpl::HandleEvent(gpr_timespec deadline) {
  reads_.Start();
  void* tag = nullptr;
  bool ok = false;
  if (queue_->AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return false;
  static_cast<CompletionTag*>(tag)->Complete(ok);
  return true;
}

std::unique_ptr<Stream> GrpcNetworkImpl::Open(const std::string& address, const std::string& method,
                                              StreamCallbacks callbacks) {
  auto call = std::make_unique<GrpcClientCall>(
      limits_, [this](GrpcCall* call) { client_calls_.erase(call); }, &channels_, address);
  GrpcClientCall* const opened = call.get();
  client_calls_.emplace(opened, std::move(call));
  return opened->Open(method, std::move(callbacks), queue_.get(), lent_);
}

absl::StatusOr<std::string> GrpcNetworkImpl::Listen(const std::string& address, Acceptor acceptor) {
  SHOAL_ASSIGN_OR_RETURN(ListeningSocket socket, ListeningSocket::Open(address));
  accepted_ = builder_.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  builder_.RegisterAsyncGenericService(&service_);
  builder_.SetMaxReceiveMessageSize(options_.max_message_bytes);
  // Most of this memory is for incomplete messages.
  builder_.SetResourceQuota(grpc::ResourceQuota("server").Resize(options_.max_receiving_bytes));
  for (int algorithm = 1; algorithm < GRPC_COMPRESS_ALGORITHMS_COUNT; ++algorithm) {
    // A compressed message could grow beyond the max size.
    builder_.SetCompressionAlgorithmSupportStatus(
        static_cast<grpc_compression_algorithm>(algorithm), false);
  }
  // Clients that respect this limit wait. OpenStream() rejects the streams of other clients above
  // twice this number. The factor is for streams that the client has ended and this server has not.
  builder_.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              static_cast<int>(options_.max_streams_per_client));
  // Disables filters that no stream uses and that every message would pass. The filter for clients'
  // deadlines stays.
  builder_.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  builder_.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder_.AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  builder_.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder_.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, options_.keepalive.silence_ms);
  builder_.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options_.keepalive.answer_ms);
  builder_.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // No limit on the number of pings to a silent peer; gRPC's default is two.
  builder_.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Ends connections that do not complete the handshake or that have no stream.
  builder_.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kSilenceMs);
  builder_.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder_.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
  server_ = builder_.BuildAndStart();
  if (server_ == nullptr) {
    return absl::InternalError(
        absl::StrCat("cannot listen at ", address, ": gRPC did not start; its log says why"));
  }
  acceptor_ = std::move(acceptor);
  AwaitClient();
  listener_ = std::make_unique<ConnectionAcceptor>(
      std::move(socket),
      ConnectionAcceptor::Options{.connections = &connections_,
                                  .on_connection = [this](int fd) { OnConnection(fd); },
                                  .warn = options_.warn});
  return listener_->address();
}

void GrpcNetworkImpl::OnConnection(int fd) {
  // Sets the same options as gRPC for connections that it accepts itself.
  const int on = 1;
  const auto lost_after_ms = static_cast<unsigned>(options_.keepalive.answer_ms);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost_after_ms, sizeof(lost_after_ms));
  // The callbacks use no member of this object, because gRPC's threads may read after its end.
  ReceivingLimits limits = {.on_flood = [warn = options_.warn] {
    if (warn) warn("ended a connection: its client sends headers, or a message, without end");
  }};
  // Without a peer name, the streams of a connection are not known.
  if (!PeerOf(fd).empty()) {
    limits.on_too_long = [link = link_, fd](uint64_t bytes) { link->OnTooLong(fd, bytes); };
    limits.max_message_bytes = kMaxFirstMessageBytes;
  }
  LimitReceiving(fd, std::move(limits));
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.fd = fd;
  accepted_->HandleNewConnection(&connection);
}

void NetworkLink::OnTooLong(int fd, uint64_t bytes) {
  MutexLock lock(&mutex_);
  if (network_ != nullptr) network_->RejectTooLong(fd, bytes);
}

// Tells all streams of the connection. The stream of the message is not known, because gRPC does
// not show the numbers of its calls. But no stream of the connection accepts a message of this
// size.
void GrpcNetworkImpl::RejectTooLong(int fd, uint64_t bytes) {
  const auto refuse = [this, fd, bytes] {
    for (const auto& [call, owner] : server_calls_) {
      auto* const server_call = static_cast<GrpcServerCall*>(call);
      if (connections_.Descriptor(server_call->connection()) == fd)
        server_call->RejectTooLong(bytes);
    }
    ReadOn(fd);
  };
  // Posts through another thread. This may be the loop's thread, which does not see its own posts
  // while it waits for events.
  Offload(
      Lane::kCopies, [] {}, refuse);
}

void GrpcNetworkImpl::AwaitClient() {
  auto call = std::make_unique<GrpcServerCall>(
      next_server_call_++, limits_, [this](GrpcCall* call) { RemoveServerCall(call); },
      [this](GrpcServerCall* call) { OnClient(call); },
      [this](GrpcServerCall* call) { OnTalk(call); });
  call->Request(&service_, queue_.get());
  awaiting_ = std::move(call);
}

void GrpcNetworkImpl::OnClient(GrpcServerCall* call) {
  server_calls_.emplace(call, std::move(awaiting_));
  if (cancelling_) return call->Break(absl::CancelledError("shutting down"));
  AwaitClient();
  const absl::Status placed = TakePlace(call);
  if (winding_down_) {
    call->Reject(absl::UnavailableError("shutting down"));
  } else if (!placed.ok()) {
    call->Reject(placed);
  } else if (IsHealthMethod(call->method())) {
    call->Accept(AcceptHealthCheck);
  } else {
    call->Accept([this, call](const std::string& method, std::unique_ptr<Stream> stream) {
      absl::StatusOr<StreamCallbacks> callbacks = acceptor_(method, std::move(stream));
      // Allows the method's messages before the first read. A rejected method allows none.
      if (callbacks.ok())
        AllowMessages(connections_.Descriptor(call->connection()), call->max_request_bytes());
      return callbacks;
    });
  }
}

absl::Status GrpcNetworkImpl::TakePlace(GrpcServerCall* call) {
  silent_.emplace(call->number(), call);
  call->set_connection(connections_.Find(call->peer()));
  if (!connections_.OpenStream(call->connection())) {
    return absl::ResourceExhaustedError(absl::StrCat(listener_->address(), " takes no more than ",
                                                     options_.max_streams_per_client,
                                                     " streams on one connection"));
  }
  if (silent_.size() + talking_ <= options_.max_streams) return absl::OkStatus();
  const absl::Status crowded = absl::ResourceExhaustedError(absl::StrCat(
      listener_->address(), " has ", options_.max_streams, " streams open, the maximum"));
  while (silent_.size() + talking_ > options_.max_streams) {
    GrpcServerCall* const oldest = silent_.begin()->second;
    // The server always answers a health check.
    if (oldest == call) return IsHealthMethod(call->method()) ? absl::OkStatus() : crowded;
    silent_.erase(silent_.begin());
    oldest->Break(crowded);
    if (options_.warn && Now() - crowded_said_ >= kCrowdedPeriod) {
      crowded_said_ = Now();
      options_.warn(absl::StrCat(crowded.message(), "; it ends silent ones for new ones"));
    }
  }
  return absl::OkStatus();
}

void GrpcNetworkImpl::OnTalk(GrpcServerCall* call) {
  // A health stream counts as silent, so that it gives way to others.
  if (IsHealthMethod(call->method())) return;
  if (call->talks()) {
    silent_.erase(call->number());
    ++talking_;
    connections_.BeginTalk(call->connection());
  } else {
    silent_.emplace(call->number(), call);
    --talking_;
    connections_.EndTalk(call->connection());
  }
}

void GrpcNetworkImpl::RemoveServerCall(GrpcCall* call) {
  if (call == awaiting_.get()) return awaiting_.reset();
  const auto* const server_call = static_cast<GrpcServerCall*>(call);
  silent_.erase(server_call->number());
  connections_.CloseStream(server_call->connection());
  server_calls_.erase(call);
}

GrpcNetwork::Stats GrpcNetworkImpl::stats() const {
  Stats stats;
  for (const Calls* calls : {&client_calls_, &server_calls_}) {
    for (const auto& [call, owner] : *calls) {
      ++stats.streams;
      stats.shared_streams += call->shares() ? 1 : 0;
      stats.queued_messages += call->queued_messages();
      stats.queued_bytes += call->queued_bytes();
    }
  }
  return stats;
}

void GrpcNetworkImpl::WindDown(Time deadline) {
  winding_down_ = true;
  for (const auto& [call, owner] : client_calls_) call->EndAfterQueue(absl::OkStatus());
  for (const auto& [call, owner] : server_calls_) {
    call->EndAfterQueue(absl::UnavailableError("shutting down"));
  }
  while (!(client_calls_.empty() && server_calls_.empty()) && HandleEvent(ToGrpc(deadline))) {
  }
}

void GrpcNetworkImpl::End(Time grace) {
  std::vector<std::function<void()>> dropped;
  {
    MutexLock lock(&mutex_);
    if (ended_) return;
    ended_ = true;
    dropped.swap(posted_);
  }
  link_->Cut();
  if (listener_ != nullptr) listener_->Stop();
  offload_.Close();
  offload_brief_.Close();
  offload_copies_.Close();
  const Time deadline = Now() + grace;
  for (const Calls* calls : {&client_calls_, &server_calls_}) {
    for (const auto& [call, owner] : *calls) call->Silence();
  }
  if (grace > Time::zero()) WindDown(deadline);
  cancelling_ = true;
  const absl::Status reason = absl::CancelledError("shutting down");
  for (const auto& [call, owner] : client_calls_) call->Break(reason);
  for (const auto& [call, owner] : server_calls_) call->Break(reason);
  if (server_ != nullptr) {
    // Closes connections without streams in order, and cuts them at the deadline.
    server_->Shutdown(std::chrono::system_clock::now() +
                      std::chrono::duration_cast<std::chrono::microseconds>(deadline - Now()));
  }
  // Remaining calls may start operations, and these need an open queue.
  const gpr_timespec never = gpr_inf_future(GPR_CLOCK_MONOTONIC);
  while (awaiting_ != nullptr || !client_calls_.empty() || !server_calls_.empty()) {
    HandleEvent(never);
  }
  queue_->Shutdown();
  while (HandleEvent(never)) {
  }
  timers_.Clear();
  // Last, because a disk may not answer. Peers have heard of the end by now.
  offload_.Stop();
  offload_brief_.Stop();
  offload_copies_.Stop();
}

}  // namespace

std::unique_ptr<GrpcNetwork> GrpcNetwork::Create(Options options) {
  TuneAllocatorForTransport();
  return std::make_unique<GrpcNetworkImpl>(options);
}

}  // namespace shoal
