#include "worker/exchange/parameter_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/base/version.h"
#include "common/compression/chunk_payload.h"
#include "common/log/logging.h"
#include "common/step_plan/round_message.h"

namespace shoal {
namespace {

// How often to check whether the transport still uses gradients of a former timeline. This wait is
// rare and short.
constexpr Time kReleaseCheckPeriod = std::chrono::milliseconds(10);

// Returns the chunks about in the order in which forward reads them. Forward reads the variables in
// the order of the model, whatever their update rule. It does not read moving averages, which are
// last.
std::vector<int> PullOrder(const std::vector<Chunk>& chunks) {
  std::vector<int> order(chunks.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int chunk) {
    return std::pair(chunks[chunk].rule == UpdateRule::kMovingAverage,
                     chunks[chunk].pieces.front().variable);
  });
  return order;
}

}  // namespace

ParameterExchange::ParameterExchange(Options options)
    : options_(std::move(options)),
      worker_(options_.worker),
      encoder_({.shard_map = options_.shard_map,
                .layout = options_.layout,
                .gradients = options_.gradients,
                .codec = options_.push_codec}),
      copies_(options_.loop) {
  peers_.resize(options_.addresses.size());
  for (int ps = 0; ps < static_cast<int>(peers_.size()); ++ps) {
    peers_[ps].versions.resize(options_.shard_map->ps(ps).chunks.size(), 0);
    peers_[ps].pulled = peers_[ps].versions;
    peers_[ps].here.resize(peers_[ps].versions.size());
    peers_[ps].pull_order = PullOrder(options_.shard_map->ps(ps).chunks);
    peers_[ps].stream = std::make_unique<ReconnectingStream>(ReconnectingStream::Options{
        .loop = options_.loop,
        .network = options_.network,
        .server = {options_.addresses[ps], ps},
        .method = kExchangeMethod,
        .seed = options_.worker * uint64_t{7919} + ps,
        .on_open = [this, ps] { SendHello(ps); },
        .on_message = [this, ps](Message message) { OnMessage(ps, std::move(message)); },
        .on_closed = [this, ps](const absl::Status& status) { OnClosed(ps, status); },
        .is_quiet = [this, ps] { return IsQuiet(ps); },
        .on_reopen = [this, ps] { OnReopen(ps); }});
    peers_[ps].stream->Open();
  }
}

void ParameterExchange::SetTimeline(uint64_t timeline) {
  timeline_ = timeline;
  copies_.Drop();
  encoder_.Forget();
  if (step_slices_ != nullptr) dropped_slices_ = std::exchange(step_slices_, nullptr);
  pull_done_ = nullptr;
  step_done_ = nullptr;
  pulls_missing_ = chunks_missing_ = cut_pulls_missing_ = 0;
  for (Peer& peer : peers_) {
    peer.pulls.clear();
    peer.cut_pulls.clear();
    peer.pushes.clear();
    peer.waiting.clear();
    peer.here.assign(peer.here.size(), false);
  }
  if (cut_done_ != nullptr)
    std::exchange(cut_done_, nullptr)(absl::CancelledError("another timeline"));
}

void ParameterExchange::PullAll(std::function<void()> done) {
  Pull(std::nullopt, [done = std::move(done)](const absl::Status&) { done(); });
}

void ParameterExchange::PullVersion(uint64_t version, std::function<void(absl::Status)> done) {
  Pull(version, std::move(done));
}

void ParameterExchange::Pull(std::optional<uint64_t> version,
                             std::function<void(absl::Status)> done) {
  pull_done_ = std::move(done);
  pull_version_ = version;
  for (int ps = 0; ps < static_cast<int>(peers_.size()); ++ps) {
    Peer& peer = peers_[ps];
    for (const int i : peer.pull_order) {
      if (peer.here[i] && !chunk(ps, i).pushed()) continue;
      if (peer.pulls.insert(i).second) peer.waiting.push_back({RequestKind::kPull, i});
    }
    pulls_missing_ += static_cast<int>(peer.pulls.size());
    RequestMore(ps);
  }
  MaybeFinishPull();
}

std::vector<ChunkId> ParameterExchange::Missing() const {
  std::vector<ChunkId> missing;
  for (int ps = 0; ps < static_cast<int>(peers_.size()); ++ps) {
    for (const int chunk : peers_[ps].pulls) missing.push_back({ps, chunk});
  }
  return missing;
}

void ParameterExchange::PullCut(uint64_t cut_step, std::span<float> out,
                                std::function<void(absl::Status)> done) {
  cut_done_ = std::move(done);
  cut_step_ = cut_step;
  cut_out_ = out;
  cut_rejection_.reset();
  for (int ps = 0; ps < static_cast<int>(peers_.size()); ++ps) {
    Peer& peer = peers_[ps];
    for (int i = 0; i < static_cast<int>(peer.versions.size()); ++i) {
      if (peer.cut_pulls.insert(i).second) peer.waiting.push_back({RequestKind::kCutPull, i});
    }
    cut_pulls_missing_ += static_cast<int>(peer.cut_pulls.size());
    RequestMore(ps);
  }
}

void ParameterExchange::BeginStep(uint64_t step, std::function<void()> done,
                                  const std::optional<Round>& round) {
  step_ = step;
  round_ = round;
  skips_gradient_ = false;
  step_done_ = std::move(done);
  step_slices_ = std::make_shared<std::shared_ptr<const void>>(options_.gradients_owner);
  chunks_missing_ = 0;
  for (int ps = 0; ps < static_cast<int>(peers_.size()); ++ps) {
    peers_[ps].pushes.clear();
    std::erase_if(peers_[ps].waiting,
                  [](const Request& request) { return request.kind == RequestKind::kPush; });
    // The gradient is computed from the current values. Values that arrive later do not change it.
    peers_[ps].pulled = peers_[ps].versions;
    for (const Chunk& each : options_.shard_map->ps(ps).chunks)
      chunks_missing_ += each.pushed() ? 1 : 0;
  }
}

void ParameterExchange::PushChunk(int ps, int chunk) {
  if (step_done_ == nullptr) return;  // the timeline was lost meanwhile
  peers_[ps].pushes.insert(chunk);
  peers_[ps].waiting.push_back({RequestKind::kPush, chunk});
  RequestMore(ps);
}

int ParameterExchange::Unanswered(const Peer& peer) {
  return static_cast<int>(peer.pushes.size() + peer.pulls.size() + peer.cut_pulls.size()) -
         static_cast<int>(peer.waiting.size());
}

void ParameterExchange::RequestMore(int ps) {
  Peer& peer = peers_[ps];
  if (!peer.hello_seen) return;  // OnHello() calls this again
  while (!peer.waiting.empty() && Unanswered(peer) < kWindow) {
    const Request first = peer.waiting.front();
    int count = 0;
    do {
      peer.waiting.pop_front();
      ++count;
    } while (first.kind != RequestKind::kPush && !peer.waiting.empty() &&
             peer.waiting.front().kind == first.kind &&
             peer.waiting.front().chunk == first.chunk + count && Unanswered(peer) < kWindow);
    if (first.kind == RequestKind::kPush) {
      SendPush(ps, first.chunk);
    } else {
      SendPull(ps, first, count);
    }
  }
}

void ParameterExchange::SendPush(int ps, int chunk) {
  peers_[ps].stream->SendFrom(SourceOf([this, ps, chunk, timeline = timeline_, step = step_] {
    return MakePush(ps, chunk, timeline, step);
  }));
}

std::optional<Message> ParameterExchange::MakePush(int ps, int index, uint64_t timeline,
                                                   uint64_t step) {
  Peer& peer = peers_[ps];
  if (timeline != timeline_ || step != step_ || !peer.pushes.contains(index)) return std::nullopt;
  proto::ExchangeRequest request;
  proto::Push* push = request.mutable_push();
  push->set_timeline(timeline_);
  push->set_step(step_);
  push->set_chunk(index);
  push->set_pulled_version(peer.pulled[index]);
  push->set_want_values(WantsValues());
  if (round_.has_value()) SetRound(*round_, push);
  if (skips_gradient_) {
    push->set_skip(true);
    return MakeMessage(request);
  }
  Message message = MakeMessage(request, encoder_.Encodes(chunk(ps, index))
                                             ? std::vector<Slice>{encoder_.Payload(ps, index)}
                                             : GradientSlices(chunk(ps, index)));
  peer.sent_bytes += message.payload_bytes();
  return message;
}

// The gradient does not change until every chunk of the step is acknowledged. No transport reads it
// longer than this. At the end of the process nobody waits for the acknowledgements. Therefore the
// slices also keep the buffer alive.
std::vector<Slice> ParameterExchange::GradientSlices(const Chunk& chunk) const {
  std::vector<Slice> slices;
  for (const ChunkPiece& piece : chunk.pieces) {
    const float* begin = options_.gradients.data() +
                         options_.layout->variables[piece.variable].offset + piece.variable_offset;
    slices.push_back(
        {reinterpret_cast<const char*>(begin), piece.size * sizeof(float), step_slices_});
  }
  return slices;
}

void ParameterExchange::SendPull(int ps, const Request& first, int count) {
  proto::ExchangeRequest request;
  proto::Pull* pull = request.mutable_pull();
  pull->set_timeline(timeline_);
  pull->set_first_chunk(first.chunk);
  pull->set_chunk_count(count);
  if (first.kind == RequestKind::kCutPull) {
    pull->set_cut_step(cut_step_);
  } else if (pull_version_.has_value()) {
    pull->set_version(*pull_version_);
  }
  peers_[ps].stream->Send(MakeMessage(request));
}

void ParameterExchange::SetWorker(uint32_t worker) {
  if (std::exchange(worker_, worker) == worker) return;
  for (int ps = 0; ps < static_cast<int>(peers_.size()); ++ps) SendHello(ps);
}

void ParameterExchange::SendHello(int ps) {
  proto::ExchangeRequest request;
  proto::ExchangeHello* hello = request.mutable_hello();
  hello->set_version(kVersion);
  hello->set_worker(worker_);
  hello->set_shard_map_fingerprint(options_.shard_map->Fingerprint());
  hello->set_job_fingerprint(options_.job_fingerprint);
  if (options_.push_codec != nullptr) hello->set_push_codec(options_.push_codec->config());
  if (options_.pull_codec != nullptr) hello->set_pull_codec(options_.pull_codec->config());
  peers_[ps].stream->Send(MakeMessage(request));
}

void ParameterExchange::OnClosed(int ps, const absl::Status& status) {
  Peer& peer = peers_[ps];
  if (peer.hello_seen) {
    const std::string& address = options_.addresses[ps];
    LogWarning(absl::StrCat("lost the stream to ps ", ps, " at ", address, ": ",
                            absl::StripPrefix(status.message(), address + ": ")));
  }
  peer.hello_seen = false;
  peer.last_error = std::string(status.message());
  if (absl::IsFailedPrecondition(status) || absl::IsAborted(status))
    return options_.on_failed(status);
  peer.stream->OpenLater();
  // A ps rejects a step beyond its window, and a version whose steps are not all in. An earlier
  // step must be done first. This worker may hold that step, or may be the only one to take it. So
  // it cancels the timeline's work and begins again with the earliest steps.
  if (status.code() == absl::StatusCode::kOutOfRange && timeline_ != 0)
    EndTimeline(peer.last_error);
}

bool ParameterExchange::IsQuiet(int ps) const {
  const Peer& peer = peers_[ps];
  return peer.hello_seen && Unanswered(peer) == 0 && gradients_are_free();
}

// Requests wait for the hello on the next stream.
void ParameterExchange::OnReopen(int ps) {
  LogInfo(absl::StrCat("opening the stream to ps ", ps, " at ", options_.addresses[ps],
                       " anew, with new certificates"));
  peers_[ps].hello_seen = false;
  peers_[ps].last_error.clear();
}

void ParameterExchange::OnMessage(int ps, Message message) {
  peers_[ps].received_bytes += message.payload_bytes();
  proto::ExchangeReply reply;
  if (!ParseMessage(message, &reply)) {
    return options_.on_failed(InvalidMessageError(
        absl::StrCat("ps ", ps, " at ", options_.addresses[ps]), reply.GetTypeName()));
  }
  switch (reply.kind_case()) {
    case proto::ExchangeReply::kHello:
      return OnHello(ps, reply.hello());
    case proto::ExchangeReply::kApplied:
      return OnApplied(ps, reply.applied(), std::move(message));
    case proto::ExchangeReply::kValues:
      return OnValues(ps, reply.values(), message);
    case proto::ExchangeReply::kRejection:
      return OnRejected(ps, reply.rejection());
    case proto::ExchangeReply::KIND_NOT_SET:
      return;
  }
}

void ParameterExchange::OnHello(int ps, const proto::ServerHello& hello) {
  Peer& peer = peers_[ps];
  peer.hello_seen = true;
  if (timeline_ == 0) return;
  if (hello.timeline() != timeline_)
    return EndTimeline(absl::StrCat("ps ", ps, " is in another timeline"));
  // Requests and answers on the old stream may be lost. The ps recognises a repeated push.
  peer.waiting.clear();
  for (const int chunk : peer.pushes) peer.waiting.push_back({RequestKind::kPush, chunk});
  for (const int chunk : peer.pull_order) {
    if (peer.pulls.contains(chunk)) peer.waiting.push_back({RequestKind::kPull, chunk});
  }
  for (const int chunk : peer.cut_pulls) peer.waiting.push_back({RequestKind::kCutPull, chunk});
  RequestMore(ps);
}

void ParameterExchange::OnApplied(int ps, const proto::Applied& applied, Message message) {
  Peer& peer = peers_[ps];
  const int index = static_cast<int>(applied.chunk());
  if (applied.timeline() != timeline_ || applied.step() != step_ || !peer.pushes.contains(index))
    return;
  const Codec* const codec = options_.pull_codec.get();
  const bool aside = WantsValues() && CodecOf(codec, chunk(ps, index)) == nullptr &&
                     message.payload_bytes() >= options_.min_copied_aside_bytes;
  if (WantsValues()) {
    if (aside ? !CheckSize(ps, index, message)
              : !Scatter(ps, index, message, options_.parameters, codec))
      return;
    peer.versions[index] = applied.version();
  }
  encoder_.Acknowledge(ps, index, applied.repeated());
  peer.pushes.erase(index);  // a repeated answer is then ignored
  if (aside) {
    copies_.Copy(std::move(message), Places(chunk(ps, index), options_.parameters),
                 [this, ps, index] { OnPushAnswered(ps, index); });
  }
  OnAnswered(ps);
  if (!aside) OnPushAnswered(ps, index);
}

void ParameterExchange::OnPushAnswered(int ps, int chunk) {
  if (WantsValues()) options_.on_arrived(ps, chunk);
  if (--chunks_missing_ == 0) std::exchange(step_done_, nullptr)();
}

void ParameterExchange::OnValues(int ps, const proto::ChunkValues& values, const Message& message) {
  Peer& peer = peers_[ps];
  const int index = static_cast<int>(values.chunk());
  if (values.timeline() != timeline_) return;
  if (values.cut_step() != 0) {
    if (values.cut_step() != cut_step_ || !peer.cut_pulls.contains(index)) return;
    if (!Scatter(ps, index, message, cut_out_, nullptr)) return;
    peer.cut_pulls.erase(index);
    OnAnswered(ps);
    --cut_pulls_missing_;
    return MaybeFinishCut();
  }
  if (!peer.pulls.contains(index)) return;
  // Ignores a late answer to an older pull that another ps rejected.
  if (pull_version_.has_value() && values.version() != *pull_version_ && chunk(ps, index).pushed())
    return;
  if (!Scatter(ps, index, message, options_.parameters, options_.pull_codec.get())) return;
  peer.versions[index] = values.version();
  peer.here[index] = true;
  peer.pulls.erase(index);
  OnAnswered(ps);
  --pulls_missing_;
  options_.on_arrived(ps, index);
  MaybeFinishPull();
}

void ParameterExchange::MaybeFinishPull() {
  if (pull_done_ == nullptr || pulls_missing_ > 0) return;
  if (dropped_slices_.expired()) return std::exchange(pull_done_, nullptr)(absl::OkStatus());
  if (!release_check_.pending())
    release_check_.Set(kReleaseCheckPeriod, [this] { MaybeFinishPull(); });
}

// Only an answer counts as accepted. A stream that breaks on the first request says hello, too.
void ParameterExchange::OnAnswered(int ps) {
  peers_[ps].stream->MarkAccepted();
  RequestMore(ps);
  peers_[ps].stream->ReopenIfQuiet();
}

// Rule 4.
void ParameterExchange::OnRejected(int ps, const proto::Rejection& rejected) {
  // Ignores a late answer to a request of a former timeline.
  if (timeline_ == 0 || rejected.requested_timeline() != timeline_) return;
  if (rejected.timeline() != timeline_) return EndTimeline(rejected.reason());
  if (rejected.round_complete()) return OnVersionRejected(rejected);
  // The timeline is right, but the ps no longer holds the cut. The pull still waits for the answers
  // of the other ps. Otherwise these could arrive during a later pull of the same cut.
  Peer& peer = peers_[ps];
  if (rejected.requested_cut_step() != cut_step_ || peer.cut_pulls.empty()) return;
  cut_pulls_missing_ -= static_cast<int>(peer.cut_pulls.size());
  peer.cut_pulls.clear();
  std::erase_if(peer.waiting,
                [](const Request& request) { return request.kind == RequestKind::kCutPull; });
  cut_rejection_ = rejected.reason();
  MaybeFinishCut();
}

// OnValues() recognises late values of the other ps by their version.
void ParameterExchange::OnVersionRejected(const proto::Rejection& rejected) {
  if (pull_done_ == nullptr || !rejected.has_requested_version() ||
      pull_version_ != rejected.requested_version())
    return;
  for (Peer& peer : peers_) {
    peer.pulls.clear();
    std::erase_if(peer.waiting,
                  [](const Request& request) { return request.kind == RequestKind::kPull; });
  }
  pulls_missing_ = 0;
  std::exchange(pull_done_, nullptr)(absl::OutOfRangeError(rejected.reason()));
}

void ParameterExchange::MaybeFinishCut() {
  if (cut_pulls_missing_ > 0) return;
  std::exchange(cut_done_, nullptr)(cut_rejection_.has_value()
                                        ? absl::FailedPreconditionError(*cut_rejection_)
                                        : absl::OkStatus());
}

void ParameterExchange::EndTimeline(const std::string& why) {
  SetTimeline(0);
  options_.on_timeline_lost(why);
}

bool ParameterExchange::CheckSize(int ps, int index, const Message& message) const {
  const size_t size_bytes = chunk(ps, index).size * sizeof(float);
  if (message.payload_bytes() == size_bytes) return true;
  options_.on_failed(absl::FailedPreconditionError(absl::StrCat(
      "ps ", ps, " at ", options_.addresses[ps], " sent ", message.payload_bytes(),
      " bytes of chunk ", index, ", which has ", size_bytes, ": that ps runs another build")));
  return false;
}

std::vector<PayloadCopies::Piece> ParameterExchange::Places(const Chunk& chunk,
                                                            std::span<float> out) const {
  std::vector<PayloadCopies::Piece> places;
  size_t offset = 0;
  for (const ChunkPiece& piece : chunk.pieces) {
    const size_t size_bytes = piece.size * sizeof(float);
    float* const to =
        out.data() + options_.layout->variables[piece.variable].offset + piece.variable_offset;
    places.push_back({to, offset, size_bytes});
    offset += size_bytes;
  }
  return places;
}

bool ParameterExchange::Scatter(int ps, int index, const Message& message, std::span<float> out,
                                const Codec* codec) const {
  const Chunk& chunk = this->chunk(ps, index);
  if (CodecOf(codec, chunk) != nullptr) {
    const auto place = [&](const ChunkPiece& piece) {
      return out.subspan(options_.layout->variables[piece.variable].offset + piece.variable_offset,
                         piece.size);
    };
    const absl::Status decoded = DecodeChunk(*codec, chunk, message, place);
    if (!decoded.ok()) {
      options_.on_failed(absl::FailedPreconditionError(
          absl::StrCat("ps ", ps, " at ", options_.addresses[ps], ", chunk ", index, ": ",
                       std::string(decoded.message()), ": that ps runs another build")));
    }
    return decoded.ok();
  }
  if (!CheckSize(ps, index, message)) return false;
  for (const auto& [to, offset, size_bytes] : Places(chunk, out)) {
    CopyPayload(message, offset, to, size_bytes);
  }
  return true;
}

void ParameterExchange::Collect(MetricSamples* out) const {
  for (size_t ps = 0; ps < peers_.size(); ++ps) {
    const std::string transport = options_.addresses[ps].starts_with("unix:") ? "unix" : "tcp";
    out->Add("shoal_worker_payload_bytes_total", static_cast<double>(peers_[ps].sent_bytes),
             {absl::StrCat(ps), "sent", transport});
    out->Add("shoal_worker_payload_bytes_total", static_cast<double>(peers_[ps].received_bytes),
             {absl::StrCat(ps), "received", transport});
  }
}

std::vector<ParameterExchange::Wait> ParameterExchange::Waits() const {
  std::vector<Wait> waits;
  for (int ps = 0; ps < static_cast<int>(peers_.size()); ++ps) {
    const Peer& peer = peers_[ps];
    if (!peer.hello_seen || !peer.pulls.empty() || !peer.pushes.empty() || !peer.cut_pulls.empty())
      waits.push_back({ps, peer.hello_seen});
  }
  return waits;
}

std::string ParameterExchange::Waiting() const {
  std::vector<std::string> waiting;
  for (const Wait& wait : Waits()) {
    const std::string& address = options_.addresses[wait.ps];
    std::string why = "no answer";
    if (!wait.connected) {
      const std::string error = options_.network->IsLookingUp(address) ? "looking up the name"
                                                                       : peers_[wait.ps].last_error;
      why = absl::StrCat("no connection", error.empty() ? "" : ": ", error);
    }
    waiting.push_back(absl::StrCat("ps ", wait.ps, " at ", address, " (", why, ")"));
  }
  if (pull_done_ != nullptr && pulls_missing_ == 0)
    waiting.push_back("the transport, which still sends gradients of the former timeline");
  return absl::StrJoin(waiting, ", ");
}

}  // namespace shoal
