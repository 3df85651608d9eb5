#include "ps/services/control_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "proto/parameter_server.pb.h"

namespace shoal {
namespace {

// Longer waits are logged, again and again.
constexpr Time kWatchPeriod = std::chrono::seconds(5);
// A ps that leaves waits this long for a coordinator. One whose streams broke tries again at once,
// and container runtimes wait 10 s before they kill.
constexpr Time kCoordinatorPatience = std::chrono::seconds(2);

std::string Text(const absl::Status& status) { return std::string(status.message()); }

}  // namespace

ControlService::ControlService(Options options, PsState* state)
    : StreamService(state->loop),
      options_(std::move(options)),
      state_(state),
      start_(state->loop->Now()) {
  watch_.Set(kWatchPeriod, [this] { WatchCoordinator(); });
}

// Promise 8: nothing waits in silence. A coordinator that is there claims once a second.
void ControlService::WatchCoordinator() {
  watch_.Set(kWatchPeriod, [this] { WatchCoordinator(); });
  if (silence() < kWatchPeriod) return;
  LogWarning(absl::StrCat(
      "waiting for the coordinator", options_.coordinator.empty() ? "" : " at ",
      options_.coordinator, " for ", WholeSeconds(silence()), " s: ",
      state_->promised_term == 0 ? "none has claimed this ps yet" : "the last one is silent"));
}

absl::Status ControlService::CheckReady() const {
  if (stopped_) return absl::FailedPreconditionError("stopped");
  if (leaving_) return absl::FailedPreconditionError("leaving, once a checkpoint is written");
  if (loading_.has_value()) return absl::UnavailableError("loading variables");
  return absl::OkStatus();
}

void ControlService::SendHello(const SessionPtr& session) {
  proto::ControlReply reply;
  state_->FillHello(reply.mutable_hello());
  *reply.mutable_hello()->mutable_claimant() = holder_.claimant();
  session->Send(reply);
  if (leaving_) SendDeparting(session);
}

void ControlService::OnClosed() {
  if (leaving_ && sessions().empty()) AwaitCoordinator();
}

void ControlService::OnMessage(const SessionPtr& session, const Message& message) {
  proto::ControlRequest request;
  if (!ParseMessage(message, &request)) {
    return session->End(InvalidMessageError("the coordinator at " + session->stream->peer(),
                                            request.GetTypeName()));
  }
  const uint64_t term = request.term();
  if (request.kind_case() == proto::ControlRequest::KIND_NOT_SET || term == 0) {
    return session->End(absl::InvalidArgumentError(
        "the ControlRequest has no term, or its kind is unknown: the peer runs another version"));
  }
  if (term < state_->promised_term) {  // rule 1
    proto::ControlReply reply;
    reply.mutable_term_rejected()->set_promised_term(state_->promised_term);
    *reply.mutable_term_rejected()->mutable_claimant() = holder_.claimant();
    return session->Send(reply);
  }
  // Rule 1 too: no coordinator could lead a ps that has promised such a term.
  if (!PlausibleTermNumber(TermNumber(term), TermNumber(state_->promised_term))) {
    return session->End(absl::FailedPreconditionError(
        absl::StrCat("the term ", TermText(term), " is too high: ps ", state_->index,
                     " has promised ", TermText(state_->promised_term),
                     ", and accepts numbers up to ", kMaxTermsAhead, " above that and at most ",
                     kMaxTermNumber, "; if a coordinator does have this term, restart this ps")));
  }
  if (RejectForHolder(session, request) || AnswerStranger(session, request)) return;
  if (term == state_->promised_term) holder_.RecordCommand(state_->loop->Now());
  OnCommand(session, request);
}

void ControlService::OnCommand(const SessionPtr& session, const proto::ControlRequest& request) {
  const uint64_t term = request.term();
  switch (request.kind_case()) {
    case proto::ControlRequest::kClaim:
      return OnClaim(session, term, request.claim());
    case proto::ControlRequest::kLoad:
      return OnLoad(session, term, request.load());
    case proto::ControlRequest::kFence:
      // Rule 6: a Fence of another timeline is ignored.
      if (state_->timeline && request.fence().timeline() == state_->timeline->term) {
        state_->timeline->cuts.OnFence(session, term, request.fence(), holder_.checkpoints());
      }
      return;
    case proto::ControlRequest::kRelease:
      if (state_->timeline) state_->timeline->cuts.OnRelease(term, request.release());
      return;
    case proto::ControlRequest::kReadCut:
      if (state_->timeline) state_->timeline->cuts.OnReadCut(session, term, request.read_cut());
      return;
    case proto::ControlRequest::kRows:
      if (loading_ && loading_->term == term && loading_->rows)
        loading_->rows->OnRows(request.rows());
      return;
    case proto::ControlRequest::kStop:
      return OnStop(session, term);
    case proto::ControlRequest::kResign:
      return holder_.Resign();
    case proto::ControlRequest::KIND_NOT_SET:
      return;
  }
}

// --- The coordinator ---

// Another run must not take the ps of a live run.
bool ControlService::RejectForHolder(const SessionPtr& session,
                                     const proto::ControlRequest& request) {
  const proto::Claim& claim = request.claim();
  if (request.term() == state_->promised_term || !holder_.Rejects(claim, state_->loop->Now()))
    return false;
  // A claim for another job gets Claimed, which tells it so at once.
  if (NamesOtherJob(claim)) return false;
  Reject(session, request.term(),
         "claim rejected: this ps follows the run of another coordinator; stop that one first");
  return true;
}

// Rule 2. The hello tells every client the promised term, so a term proves nothing. A Claim with
// the id of the holder's run does: the ps shows that id to nobody.
bool ControlService::AnswerStranger(const SessionPtr& session,
                                    const proto::ControlRequest& request) {
  const uint64_t term = request.term();
  if (request.has_claim()) {
    if (term != state_->promised_term || holder_.IsOfRun(request.claim())) return false;
    SendClaimed(session, request.claim().done_below());
    return true;
  }
  if (session->claimed_term == term) return false;
  // A coordinator whose Claim was rejected resigns all the same, and expects no answer.
  if (!request.has_resign()) {
    Reject(session, term,
           "command rejected: this stream has not claimed this ps; send a Claim of its run first");
  }
  return true;
}

void ControlService::Reject(const SessionPtr& session, uint64_t term, const std::string& why) {
  if (std::exchange(rejected_term_, term) != term) {
    LogWarning(why, {{"term", TermText(term)},
                     {"by", session->stream->peer()},
                     {"holder", Printable(holder_.claimant().address(), kMaxNameBytes)}});
  }
  proto::ControlReply reply;
  proto::ClaimRejected* rejected = reply.mutable_claim_rejected();
  rejected->set_term(term);
  *rejected->mutable_holder() = holder_.claimant();
  rejected->set_silent_ms(static_cast<uint64_t>((state_->loop->Now() - holder_.last_command()) /
                                                std::chrono::milliseconds(1)));
  session->Send(reply);
}

bool ControlService::NamesOtherJob(const proto::Claim& claim) const {
  return state_->timeline && claim.job_fingerprint() != 0 &&
         claim.job_fingerprint() != state_->timeline->variables.job_fingerprint;
}

// Rule 2. A cut in progress goes on; a Load of a lower term ends when it has been read
// (FinishLoad).
void ControlService::OnClaim(const SessionPtr& session, uint64_t term, const proto::Claim& claim) {
  const absl::Status version =
      CheckVersion(claim.version(), absl::StrCat("the coordinator at ", session->stream->peer()));
  if (!version.ok()) return session->End(version);
  if (NamesOtherJob(claim)) {
    // Its coordinator, started by mistake, must not unseat ours.
    LogWarning("claim rejected: this ps holds the variables of another job; stop this coordinator",
               {{"term", TermText(term)}, {"by", session->stream->peer()}});
    return SendClaimed(session, claim.done_below());
  }
  if (std::exchange(state_->promised_term, term) != term)
    LogInfo("claimed", {{"term", TermText(term)}, {"by", session->stream->peer()}});
  holder_.Follow(claim, state_->loop->Now());
  session->claimed_term = term;
  session->stream->TrustClient();
  training_examples_ = claim.training_examples();
  MakePlan();
  SendClaimed(session, claim.done_below());
}

void ControlService::SendClaimed(const SessionPtr& session, uint64_t done_below) {
  proto::ControlReply reply;
  proto::Claimed* claimed = reply.mutable_claimed();
  claimed->set_promised_term(state_->promised_term);
  claimed->set_done_below(done_below);
  claimed->set_incarnation(state_->incarnation);
  claimed->set_timeline(state_->timeline_term());
  if (state_->timeline) {
    claimed->set_job_fingerprint(state_->timeline->variables.job_fingerprint);
    claimed->set_shard_map_fingerprint(state_->timeline->variables.shard_map_fingerprint);
    claimed->set_base(state_->store().base());
    for (const uint64_t step : state_->store().AppliedAfterBase())
      claimed->add_applied_after_base(step);
    claimed->set_applied_chunks(state_->store().counters().applied);
    claimed->set_repeated_chunks(state_->store().counters().repeated);
    claimed->set_staleness_sum(state_->store().counters().staleness_sum);
    claimed->set_staleness_max(state_->store().counters().staleness_max);
    const VariableStore::UpdateRange updates = state_->store().updates();
    claimed->set_lowest_updates(updates.lowest);
    claimed->set_highest_updates(updates.highest);
    if (state_->timeline->plan) claimed->set_training_examples(state_->timeline->plan->examples());
  }
  session->Send(reply);
}

void ControlService::MakePlan() {
  if (state_->timeline && !state_->timeline->plan && training_examples_ > 0)
    state_->timeline->plan.emplace(state_->timeline->variables.job, training_examples_);
}

// Rule 3. The ps is empty from here until the load has been read, so no push gets in its way.
void ControlService::OnLoad(const SessionPtr& session, uint64_t term, const proto::Load& load) {
  proto::ControlReply reply;
  if (load.incarnation() != state_->incarnation) {
    reply.mutable_load_failed()->set_term(term);
    reply.mutable_load_failed()->set_other_incarnation(true);
    reply.mutable_load_failed()->set_reason(absl::StrCat(
        "the Load names incarnation ", absl::Hex(load.incarnation()), ", but ps ", state_->index,
        " has restarted as ", absl::Hex(state_->incarnation), ": claim it again"));
    return session->Send(reply);
  }
  if (state_->timeline_term() == term) {
    reply.mutable_loaded()->set_timeline(term);
    return session->Send(reply);
  }
  if (loading_ && loading_->term == term) {
    loading_->session = session;
    if (loading_->rows) loading_->rows->RequestFrom(session);
    return;
  }
  if (!load.checkpoint().empty()) {
    const absl::Status ours = CheckInCheckpoints(load.checkpoint(), holder_.checkpoints());
    if (!ours.ok()) {
      reply.mutable_load_failed()->set_term(term);
      reply.mutable_load_failed()->set_reason(Text(ours));
      return session->Send(reply);
    }
  }
  LogInfo("loading", {{"term", TermText(term)},
                      {"from", load.checkpoint().empty() ? "seed" : load.checkpoint()}});
  state_->promised_term = term;
  state_->timeline.reset();
  loading_.emplace();
  loading_->term = term;
  loading_->session = session;
  loading_->cut_step = load.cut_step();
  loading_->request = {.ps_index = state_->index,
                       .ps_count = load.ps_count(),
                       .job = load.job(),
                       .checkpoint = load.checkpoint(),
                       .manifest_checksum = load.manifest_checksum(),
                       .memory = options_.memory,
                       .workers = options_.workers,
                       .files = state_->files};
  if (!reading_load_) ReadLoad();
}

void ControlService::ReadLoad() {
  reading_load_ = true;
  scope_.Offload(
      Lane::kFiles, [request = std::move(loading_->request)] { return LoadVariables(request); },
      [this, term = loading_->term](LoadOutcome outcome) {
        reading_load_ = false;
        // A newer Load has taken its place.
        if (loading_->term != term) return ReadLoad();
        OnLoadRead(term, std::move(outcome));
      });
}

void ControlService::OnLoadRead(uint64_t term, LoadOutcome outcome) {
  if (!outcome.not_seen) return FinishLoad(term, std::move(outcome));
  LogInfo("this machine does not see the checkpoint: reading its rows from the coordinator");
  loading_->variables = std::move(outcome.variables);
  const auto filled = [this, term](const absl::Status& status) {
    // Posted, because this runs inside the RowFetch that FinishLoad destroys.
    state_->loop->Post(scope_.Guard([this, term, status] {
      if (!loading_ || loading_->term != term) return;
      LoadOutcome filled{.status = status,
                         .checkpoint_is_bad = !status.ok(),
                         .variables = std::move(loading_->variables)};
      if (status.ok()) filled.variables.store->SetApplied(loading_->cut_step);
      FinishLoad(term, std::move(filled));
    }));
  };
  loading_->rows = std::make_unique<RowFetch>(term, loading_->variables.store.get(), filled);
  if (const SessionPtr session = loading_->session.lock()) loading_->rows->RequestFrom(session);
}

void ControlService::FinishLoad(uint64_t term, LoadOutcome outcome) {
  const SessionPtr session = loading_->session.lock();
  loading_.reset();
  proto::ControlReply reply;
  // Rule 1: another coordinator may have claimed this ps while the load was being read.
  if (term < state_->promised_term) {
    reply.mutable_term_rejected()->set_promised_term(state_->promised_term);
  } else if (!outcome.status.ok()) {
    LogError("load failed", {{"term", TermText(term)}, {"reason", Text(outcome.status)}});
    reply.mutable_load_failed()->set_term(term);
    reply.mutable_load_failed()->set_reason(Text(outcome.status));
    reply.mutable_load_failed()->set_checkpoint_is_bad(outcome.checkpoint_is_bad);
    reply.mutable_load_failed()->set_checkpoint_unread(outcome.checkpoint_unread);
  } else {
    VariableStore* const store = outcome.variables.store.get();
    if (options_.on_memory_needs) options_.on_memory_needs(outcome.variables.temporary_bytes);
    state_->timeline.emplace(term, std::move(outcome.variables), state_->index, state_->loop,
                             state_->files);
    MakePlan();
    state_->stats.CountLoad();
    LogInfo("timeline begins",
            {{"timeline", TermText(term)}, {"chunks", absl::StrCat(store->chunk_count())}});
    reply.mutable_loaded()->set_timeline(term);
  }
  if (session) session->Send(reply);
}

void ControlService::OnStop(const SessionPtr& session, uint64_t term) {
  proto::ControlReply reply;
  reply.mutable_stopping();
  session->Send(reply);
  LogFields fields = {{"term", TermText(term)}};
  if (state_->timeline) {
    // Tests check by these that every chunk has had every step once.
    const VariableStore::UpdateRange updates = state_->store().updates();
    fields.emplace_back("lowest_updates", absl::StrCat(updates.lowest));
    fields.emplace_back("highest_updates", absl::StrCat(updates.highest));
  }
  End(leaving_ ? "stopped by the coordinator: this ps may leave"
               : "stopped by the coordinator: the job is over",
      fields);
}

void ControlService::Leave(Time grace) {
  if (stopped_ || leaving_) return;
  if (!state_->timeline) return End("leaving");
  LogInfo("leaving: asking the coordinator for a checkpoint first");
  leaving_ = true;
  grace_.Set(grace, [this] { End("leaving without a checkpoint: the grace period is over"); });
  for (const auto& [id, session] : sessions()) {
    if (session->greeted) SendDeparting(session);
  }
  if (sessions().empty()) AwaitCoordinator();
}

void ControlService::AwaitCoordinator() {
  coordinator_wait_.Set(kCoordinatorPatience, [this] {
    if (sessions().empty()) End("leaving without a checkpoint: no coordinator is connected");
  });
}

void ControlService::SendDeparting(const SessionPtr& session) {
  proto::ControlReply reply;
  reply.mutable_departing();
  session->Send(reply);
}

void ControlService::End(const std::string& reason, const LogFields& fields) {
  if (std::exchange(stopped_, true)) return;
  LogInfo(reason, fields);
  if (options_.on_stopped) options_.on_stopped();
}

}  // namespace shoal
