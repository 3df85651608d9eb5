#include "ps/services/exchange_service.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/base/term.h"
#include "common/base/version.h"
#include "common/step_plan/round_message.h"
#include "proto/parameter_server.pb.h"

namespace shoal {
namespace {

// At most this much of a worker's codec is kept. No codec has a longer name.
constexpr size_t kMaxCodecBytes = 200;

// Maps chunk numbers beyond int to one that no ps has.
int ChunkIndex(uint32_t chunk) {
  return static_cast<int>(std::min<uint32_t>(chunk, std::numeric_limits<int>::max()));
}

}  // namespace

void ExchangeService::SendHello(const SessionPtr& session) {
  proto::ExchangeReply reply;
  state_->FillHello(reply.mutable_hello());
  session->Send(reply);
}

void ExchangeService::OnMessage(const SessionPtr& session, const Message& message) {
  proto::ExchangeRequest request;
  if (!ParseMessage(message, &request))
    return session->End(
        InvalidMessageError("the worker at " + session->stream->peer(), request.GetTypeName()));
  if (!session->worker && !request.has_hello()) {
    return session->End(absl::InvalidArgumentError(
        "the first message is not an ExchangeHello: the peer runs another version, or is not "
        "Shoal"));
  }
  if (session->worker) session->worker->traffic->received_bytes += message.payload_bytes();
  switch (request.kind_case()) {
    case proto::ExchangeRequest::kHello:
      return OnHello(session, request.hello());
    case proto::ExchangeRequest::kPush:
      return OnPush(session, request.push(), message);
    case proto::ExchangeRequest::kPull:
      return OnPull(session, request.pull());
    case proto::ExchangeRequest::KIND_NOT_SET:
      break;
  }
  session->End(absl::InvalidArgumentError(
      "the kind of the ExchangeRequest is unknown: the peer runs another version"));
}

void ExchangeService::OnHello(const SessionPtr& session, const proto::ExchangeHello& hello) {
  const absl::Status version = CheckVersion(
      hello.version(), absl::StrCat("worker ", hello.worker(), " at ", session->stream->peer()));
  if (!version.ok()) return session->End(version);
  const absl::Status claim = session->stream->CheckClaim(static_cast<int>(hello.worker()));
  if (!claim.ok()) return session->EndQuietly(claim);
  // The fingerprints are compared with a request of this timeline. Until then the ps may be the one
  // that is wrong: a coordinator with another number of ps has yet to load it.
  session->worker =
      ExchangeClient{.shard_map_fingerprint = hello.shard_map_fingerprint(),
                     .job_fingerprint = hello.job_fingerprint(),
                     .push_codec = hello.push_codec().substr(0, kMaxCodecBytes),
                     .pull_codec = hello.pull_codec().substr(0, kMaxCodecBytes),
                     .traffic = state_->stats.TrafficOf(hello.worker(), session->stream->peer())};
}

// Rule 4: rejects a request of another timeline.
absl::Status ExchangeService::CheckTimeline(uint64_t timeline) const {
  if (state_->timeline && state_->timeline->term == timeline) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "ps ", state_->index,
      state_->timeline ? absl::StrCat(" is in timeline ", TermText(state_->timeline->term))
                       : " is empty",
      "; the request is for timeline ", TermText(timeline)));
}

ExchangeService::RequestKey ExchangeService::KeyOf(const proto::Pull& pull) {
  RequestKey key = {.timeline = pull.timeline(), .cut_step = pull.cut_step()};
  if (pull.cut_step() == 0 && pull.has_version()) key.version = pull.version();
  return key;
}

bool ExchangeService::AcceptTimeline(const SessionPtr& session, const RequestKey& key) {
  const absl::Status accepted = CheckTimeline(key.timeline);
  if (accepted.ok()) return true;
  session->SendFrom(SourceOf(
      [this, to = session.get(), accepted, key] { return MakeRejection(to, accepted, key); }));
  return false;
}

Message ExchangeService::MakeRejection(Session* session, const absl::Status& reason,
                                       const RequestKey& key) {
  state_->stats.CountRejection();
  proto::ExchangeReply reply;
  proto::Rejection* rejection = reply.mutable_rejection();
  rejection->set_timeline(state_->timeline_term());
  rejection->set_requested_timeline(key.timeline);
  rejection->set_requested_cut_step(key.cut_step);
  if (key.version) rejection->set_requested_version(*key.version);
  rejection->set_round_complete(absl::IsOutOfRange(reason));
  rejection->set_reason(std::string(reason.message()));
  return session->MakeMessage(reply);
}

// Only another job is worth a restart: the other two are of another build.
absl::Status ExchangeService::CheckJob(const ExchangeClient& worker) const {
  const LoadedVariables& variables = state_->timeline->variables;
  if (worker.job_fingerprint != variables.job_fingerprint) {
    return absl::AbortedError(absl::StrCat(
        "the worker computes the job with fingerprint ", ChecksumText(worker.job_fingerprint),
        ", ps ", state_->index, " holds the variables of the one with ",
        ChecksumText(variables.job_fingerprint), "; start the worker again"));
  }
  const uint32_t theirs = worker.shard_map_fingerprint;
  const uint32_t ours = variables.shard_map_fingerprint;
  if (theirs == 0) return absl::OkStatus();
  if (theirs == ours) return variables.coding.CheckPeer(worker.push_codec, worker.pull_codec);
  return absl::FailedPreconditionError(absl::StrCat(
      "the worker's shard map is ", ChecksumText(theirs), ", that of ps ", state_->index, " is ",
      ChecksumText(ours), ": start both from the same build and with the same cluster spec"));
}

bool ExchangeService::AcceptJob(const SessionPtr& session) {
  const absl::Status same = CheckJob(*session->worker);
  if (!same.ok()) session->End(same);
  return same.ok();
}

// Rule 5.
void ExchangeService::OnPush(const SessionPtr& session, const proto::Push& push,
                             const Message& message) {
  if (!AcceptTimeline(session, {.timeline = push.timeline()}) || !AcceptJob(session)) return;
  const Time begun = state_->loop->Now();
  const absl::StatusOr<PushResult> result = Apply(push, message);
  if (!result.ok()) return session->End(result.status());
  state_->stats.CountPush(*result, state_->loop->Now() - begun);

  proto::Applied applied;
  applied.set_timeline(push.timeline());
  applied.set_step(push.step());
  applied.set_chunk(push.chunk());
  applied.set_version(result->version);
  applied.set_repeated(result->repeated);
  applied.set_staleness(result->staleness);
  session->SendFrom(SourceOf([this, to = session.get(), applied, want_values = push.want_values()] {
    return MakeApplied(to, applied, want_values);
  }));
  state_->timeline->cuts.Advance();
}

const Chunk* ExchangeService::FindChunk(int chunk) const {
  const VariableStore& variables = state_->store();
  return chunk < variables.chunk_count() ? &variables.chunk(chunk).layout() : nullptr;
}

// The worker of a stream that ends with kUnavailable tries again. The coordinator leases steps only
// once it knows the plan, which is on its way here then.
absl::Status ExchangeService::CheckPlan(const proto::Push& push) const {
  if (state_->timeline->plan) return state_->timeline->plan->Check(push);
  return absl::UnavailableError(
      absl::StrCat("chunk ", push.chunk(), " of step ", push.step(), ": ps ", state_->index,
                   " does not know yet how many examples the job has; push again"));
}

absl::StatusOr<PushResult> ExchangeService::Apply(const proto::Push& push, const Message& message) {
  SHOAL_RETURN_IF_ERROR(CheckPlan(push));
  const int index = ChunkIndex(push.chunk());
  if (push.skip()) {
    if (push.has_round() || message.payload_bytes() > 0) {
      return absl::InvalidArgumentError(absl::StrCat("chunk ", index, " of step ", push.step(),
                                                     ": a skipped step was pushed with a ",
                                                     push.has_round() ? "round" : "gradient"));
    }
    return state_->store().PushSkip(push.step(), index, push.pulled_version());
  }
  const Chunk* const chunk = FindChunk(index);
  ChunkCoding& coding = state_->timeline->variables.coding;
  if (chunk == nullptr || !coding.compresses_push(*chunk))
    return state_->store().Push(message, push.step(), index, push.pulled_version(), RoundOf(push));
  const absl::StatusOr<Message> decoded = coding.DecodePush(*chunk, message);
  if (!decoded.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", index, " of step ", push.step(), ": ", decoded.status().message()));
  }
  return state_->store().Push(*decoded, push.step(), index, push.pulled_version(), RoundOf(push));
}

ChunkSnapshot ExchangeService::ReadLive(int chunk) {
  return Encode(chunk, *state_->store().ReadAhead(chunk));
}

ChunkSnapshot ExchangeService::Encode(int chunk, ChunkSnapshot values) const {
  const ChunkCoding& coding = state_->timeline->variables.coding;
  const Chunk& of = *FindChunk(chunk);
  if (coding.compresses_pull(of)) return coding.EncodeValues(of, values);
  return values;
}

// Sends the live values. If the answer had to wait, they include later updates. Otherwise each
// waiting worker would keep a version of the chunk.
Message ExchangeService::MakeApplied(Session* session, proto::Applied applied, bool want_values) {
  const absl::Status timeline = CheckTimeline(applied.timeline());
  if (!timeline.ok()) return MakeRejection(session, timeline, {.timeline = applied.timeline()});
  std::vector<Slice> payload;
  if (want_values) {
    ChunkSnapshot values = ReadLive(ChunkIndex(applied.chunk()));
    applied.set_version(values.version);
    payload = std::move(values.payload);
  }
  proto::ExchangeReply reply;
  *reply.mutable_applied() = std::move(applied);
  return session->MakeMessage(reply, std::move(payload));
}

void ExchangeService::OnPull(const SessionPtr& session, const proto::Pull& pull) {
  if (!AcceptTimeline(session, KeyOf(pull))) return;
  if (!AcceptJob(session)) return;
  const uint64_t end = uint64_t{pull.first_chunk()} + pull.chunk_count();
  if (end > static_cast<uint64_t>(state_->store().chunk_count())) {
    return session->End(absl::InvalidArgumentError(
        absl::StrCat("the Pull of ", pull.chunk_count(), " chunks from chunk ", pull.first_chunk(),
                     " on exceeds the chunks of ps ", state_->index, ", which has ",
                     state_->store().chunk_count())));
  }
  const absl::Status version = CheckPulledVersion(pull, end);
  if (!version.ok()) return session->End(version);
  session->SendFrom([this, to = session.get(), pull, end,
                     chunk = uint64_t{pull.first_chunk()}]() mutable -> std::optional<Message> {
    if (chunk == end) return std::nullopt;
    absl::StatusOr<Message> values = MakeValues(to, pull, static_cast<int>(chunk));
    chunk = values.ok() ? chunk + 1 : end;
    if (values.ok()) return *std::move(values);
    return MakeRejection(to, values.status(), KeyOf(pull));
  });
}

// Section 13: no pull waits for its version, so one that has not come yet is an error. Some worker
// has falsely reported the rounds before as complete. As with a step beyond the window, the worker
// that pulls drops its steps, and so gets the one that is missing. Versions only rise until the
// answer is made.
absl::Status ExchangeService::CheckPulledVersion(const proto::Pull& pull, uint64_t end) const {
  const std::optional<uint64_t> version = KeyOf(pull).version;
  for (uint64_t chunk = pull.first_chunk(); version && chunk < end; ++chunk) {
    const absl::Status status = state_->store().CheckVersion(static_cast<int>(chunk), *version);
    if (absl::IsFailedPrecondition(status)) return absl::OutOfRangeError(status.message());
  }
  return absl::OkStatus();
}

absl::StatusOr<Message> ExchangeService::MakeValues(Session* session, const proto::Pull& pull,
                                                    int chunk) {
  SHOAL_RETURN_IF_ERROR(CheckTimeline(pull.timeline()));
  ChunkSnapshot values;
  if (const std::optional<uint64_t> version = KeyOf(pull).version) {
    SHOAL_ASSIGN_OR_RETURN(values, state_->store().ReadVersion(chunk, *version));
    values = Encode(chunk, std::move(values));
  } else if (pull.cut_step() == 0) {
    values = ReadLive(chunk);
  } else {
    SHOAL_ASSIGN_OR_RETURN(values, state_->store().cut().Read(chunk, pull.cut_step()));
  }
  proto::ExchangeReply reply;
  reply.mutable_values()->set_timeline(state_->timeline_term());
  reply.mutable_values()->set_chunk(static_cast<uint32_t>(chunk));
  reply.mutable_values()->set_version(values.version);
  reply.mutable_values()->set_cut_step(pull.cut_step());
  return session->MakeMessage(reply, std::move(values.payload));
}

}  // namespace shoal
