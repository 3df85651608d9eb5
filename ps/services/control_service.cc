#include "ps/parameter_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/base/text/printable.h"
#include "common/base/version.h"
#include "common/log/logging.h"
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

ParameterServer::ParameterServer(Options options)
    : options_(std::move(options)), last_command_(options_.loop->Now()) {
  watch_.Set(kWatchPeriod, [this] { WatchCoordinator(); });
}

// Promise 8: nothing waits in silence. A coordinator that is there claims once a second.
void ParameterServer::WatchCoordinator() {
  watch_.Set(kWatchPeriod, [this] { WatchCoordinator(); });
  const Time silence = options_.loop->Now() - last_command_;
  if (silence < kWatchPeriod) return;
  LogWarning(absl::StrCat(
      "waiting for the coordinator", options_.coordinator.empty() ? "" : " at ",
      options_.coordinator, " since ", WholeSeconds(silence), " s: ",
      promised_term_ == 0 ? "none has claimed this ps yet" : "the last one has fallen silent"));
}

void ParameterServer::Collect(MetricSamples* out) const {
  const double silence = ToSeconds(options_.loop->Now() - last_command_);
  double control = 0, exchange = 0;
  for (const auto& [id, session] : sessions_) ++(session->control ? control : exchange);
  out->Add("shoal_ps_term", TermNumber(promised_term_));
  out->Add("shoal_ps_timeline", TermNumber(timeline()));
  out->Add("shoal_ps_coordinator_silence_seconds", silence);
  const VariableStore* const store = variables();
  out->Add("shoal_ps_chunks", store == nullptr ? 0 : store->chunk_count());
  const size_t early = store == nullptr ? 0 : store->early_gradients();
  const size_t before = store == nullptr ? 0 : store->versions_before();
  out->Add("shoal_ps_early_gradients", static_cast<double>(early));
  out->Add("shoal_ps_versions_before", static_cast<double>(before));
  out->Add("shoal_ps_streams", control, {"control"});
  out->Add("shoal_ps_streams", exchange, {"exchange"});
  figures_.Collect(out);
}

std::string ParameterServer::NotReady() const {
  if (stopped_) return "stopped";
  if (leaving_) return "leaving, once a checkpoint is written";
  return loading_.has_value() ? "loading variables" : "";
}

// --- Streams ---

absl::StatusOr<StreamCallbacks> ParameterServer::Accept(const std::string& method,
                                                        std::unique_ptr<Stream> stream) {
  if (method != kExchangeMethod && method != kControlMethod) {
    return absl::UnimplementedError(
        absl::StrCat(method, ": a ps serves ", kExchangeMethod, " and ", kControlMethod));
  }
  const auto session = std::make_shared<Session>();
  session->stream = std::move(stream);
  session->control = method == kControlMethod;
  const uint64_t id = next_session_++;
  sessions_[id] = session;
  const std::weak_ptr<Session> weak = session;
  // The stream is usable only after this function has returned.
  options_.loop->Post([this, weak] {
    if (const SessionPtr opened = weak.lock()) Greet(opened);
  });
  return StreamCallbacks{.on_message =
                             [this, weak](Message message) {
                               if (const SessionPtr receiver = weak.lock())
                                 OnMessage(receiver, message);
                             },
                         .on_closed = [this, id](absl::Status) { OnClosed(id); }};
}

void ParameterServer::OnClosed(uint64_t session) {
  const auto closed = sessions_.extract(session);
  if (leaving_ && closed.mapped()->control && !Coordinated()) AwaitCoordinator();
}

bool ParameterServer::Coordinated() const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& session) { return session.second->control; });
}

void ParameterServer::Greet(const SessionPtr& session) {
  if (std::exchange(session->greeted, true)) return;
  const auto fill = [this](proto::ServerHello* hello) {
    hello->set_incarnation(options_.incarnation);
    hello->set_promised_term(promised_term_);
    hello->set_timeline(timeline());
    hello->set_version(kVersion);
    hello->set_index(options_.index);
  };
  if (session->control) {
    proto::ControlReply reply;
    fill(reply.mutable_hello());
    *reply.mutable_hello()->mutable_claimant() = holder_.who();
    session->Send(reply);
    if (leaving_) SendDeparting(session);
  } else {
    proto::ExchangeReply reply;
    fill(reply.mutable_hello());
    session->Send(reply);
  }
}

void ParameterServer::End(const SessionPtr& session, const absl::Status& status) {
  if (std::exchange(session->ended, true)) return;
  LogWarning("stream ended", {{"peer", session->stream->peer()}, {"reason", Text(status)}});
  session->stream->Finish(status);
}

void ParameterServer::OnMessage(const SessionPtr& session, const Message& message) {
  if (session->ended) return;
  Greet(session);
  if (session->control) {
    OnControl(session, message);
  } else {
    OnExchange(session, message);
  }
}

void ParameterServer::OnExchange(const SessionPtr& session, const Message& message) {
  proto::ExchangeRequest request;
  if (!ParseMessage(message, &request)) {
    return End(session, absl::InvalidArgumentError("not an ExchangeRequest"));
  }
  if (!session->introduced && !request.has_hello()) {
    return End(session, absl::InvalidArgumentError(
                            "the first message of an Exchange stream must be an ExchangeHello"));
  }
  if (session->traffic != nullptr) session->traffic->received_bytes += message.payload_bytes();
  switch (request.kind_case()) {
    case proto::ExchangeRequest::kHello:
      return OnExchangeHello(session, request.hello());
    case proto::ExchangeRequest::kPush:
      return OnPush(session, request.push(), message);
    case proto::ExchangeRequest::kPull:
      return OnPull(session, request.pull());
    case proto::ExchangeRequest::KIND_NOT_SET:
      break;
  }
  End(session,
      absl::InvalidArgumentError("an ExchangeRequest of a kind that this ps does not know"));
}

void ParameterServer::OnControl(const SessionPtr& session, const Message& message) {
  proto::ControlRequest request;
  if (!ParseMessage(message, &request)) {
    return End(session, absl::InvalidArgumentError("not a ControlRequest"));
  }
  const uint64_t term = request.term();
  if (request.kind_case() == proto::ControlRequest::KIND_NOT_SET || term == 0) {
    return End(session,
               absl::InvalidArgumentError(
                   "a ControlRequest without a term, or of a kind that this ps does not know"));
  }
  if (term < promised_term_) {  // rule 1
    last_command_ = options_.loop->Now();
    proto::ControlReply reply;
    reply.mutable_term_refused()->set_promised_term(promised_term_);
    *reply.mutable_term_refused()->mutable_claimant() = holder_.who();
    return session->Send(reply);
  }
  // Rule 1 too: no coordinator could lead a ps that has promised such a term.
  if (!PlausibleTermNumber(TermNumber(term), TermNumber(promised_term_))) {
    return End(session,
               absl::FailedPreconditionError(absl::StrCat(
                   "no coordinator comes to the term ", TermText(term), ": ps ", options_.index,
                   " has promised ", TermText(promised_term_), ", and takes numbers up to ",
                   kMaxTermsAhead, " above that and ", kMaxTermNumber,
                   " at most; a coordinator that did come to it goes on "
                   "once this ps is started anew")));
  }
  if (RefusedByHolder(session, request)) return;
  last_command_ = options_.loop->Now();
  if (term == promised_term_) holder_.Heard(last_command_);
  switch (request.kind_case()) {
    case proto::ControlRequest::kClaim:
      return OnClaim(session, term, request.claim());
    case proto::ControlRequest::kLoad:
      return OnLoad(session, term, request.load());
    case proto::ControlRequest::kFence:
      // Rule 6: a Fence of another timeline is ignored.
      if (timeline_ && request.fence().timeline() == timeline_->term) {
        timeline_->cuts.OnFence(session, term, request.fence(), holder_.checkpoints());
      }
      return;
    case proto::ControlRequest::kRelease:
      if (timeline_) timeline_->cuts.OnRelease(request.release());
      return;
    case proto::ControlRequest::kReadCut:
      if (timeline_) timeline_->cuts.OnReadCut(session, term, request.read_cut());
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

// Another run must not take the ps of a live run. A command of a higher term without a claim would
// take them too.
bool ParameterServer::RefusedByHolder(const SessionPtr& session,
                                      const proto::ControlRequest& request) {
  const Time now = options_.loop->Now();
  if (request.term() == promised_term_ || !holder_.Refuses(request.claim(), now)) return false;
  const proto::Claim& claim = request.claim();
  // A claim for another job gets Claimed, which tells it so at once.
  if (timeline_ && claim.job_fingerprint() != 0 &&
      claim.job_fingerprint() != timeline_->variables.job_fingerprint)
    return false;
  if (std::exchange(refused_term_, request.term()) != request.term()) {
    LogWarning("not claimed: this ps keeps to the run of another coordinator",
               {{"term", TermText(request.term())},
                {"by", session->stream->peer()},
                {"holder", Printable(holder_.who().address(), kMaxNameBytes)}});
  }
  proto::ControlReply reply;
  proto::ClaimRefused* refused = reply.mutable_claim_refused();
  refused->set_term(request.term());
  *refused->mutable_holder() = holder_.who();
  refused->set_silent_ms(
      static_cast<uint64_t>((now - holder_.heard()) / std::chrono::milliseconds(1)));
  session->Send(reply);
  return true;
}

// Rule 2. A cut in progress goes on; a Load of a lower term ends when it has been read
// (FinishLoad).
void ParameterServer::OnClaim(const SessionPtr& session, uint64_t term, const proto::Claim& claim) {
  const absl::Status version =
      CheckVersion(claim.version(), absl::StrCat("the coordinator at ", session->stream->peer()));
  if (!version.ok()) return End(session, version);
  const bool of_another_job = claim.job_fingerprint() != 0 && timeline_ &&
                              claim.job_fingerprint() != timeline_->variables.job_fingerprint;
  if (of_another_job) {
    // Its coordinator, started by mistake, must not unseat ours.
    LogWarning("not claimed: this ps holds another job",
               {{"term", TermText(term)}, {"by", session->stream->peer()}});
  } else if (term != promised_term_) {
    LogInfo("claimed", {{"term", TermText(term)}, {"by", session->stream->peer()}});
  }
  if (!of_another_job) {
    const bool again = std::exchange(promised_term_, term) == term;
    again ? holder_.FollowOn(claim, options_.loop->Now())
          : holder_.Follow(claim, options_.loop->Now());
    training_examples_ = claim.training_examples();
    TakePlan();
  }
  proto::ControlReply reply;
  proto::Claimed* claimed = reply.mutable_claimed();
  claimed->set_promised_term(promised_term_);
  claimed->set_done_below(claim.done_below());
  claimed->set_incarnation(options_.incarnation);
  claimed->set_timeline(timeline());
  if (timeline_) {
    claimed->set_job_fingerprint(timeline_->variables.job_fingerprint);
    claimed->set_shard_map_fingerprint(timeline_->variables.shard_map_fingerprint);
    claimed->set_base(store().base());
    for (const uint64_t step : store().AppliedAfterBase()) claimed->add_applied_after_base(step);
    claimed->set_applied_chunks(store().counters().applied);
    claimed->set_repeated_chunks(store().counters().repeated);
    claimed->set_staleness_sum(store().counters().staleness_sum);
    claimed->set_staleness_max(store().counters().staleness_max);
    const VariableStore::UpdateRange updates = store().updates();
    claimed->set_lowest_updates(updates.lowest);
    claimed->set_highest_updates(updates.highest);
    if (timeline_->plan) claimed->set_training_examples(timeline_->plan->examples());
  }
  session->Send(reply);
}

void ParameterServer::TakePlan() {
  if (timeline_ && !timeline_->plan && training_examples_ > 0)
    timeline_->plan.emplace(timeline_->variables.job, training_examples_);
}

// Rule 3. The ps is empty from here until the load has been read, so no push gets in its way.
void ParameterServer::OnLoad(const SessionPtr& session, uint64_t term, const proto::Load& load) {
  proto::ControlReply reply;
  if (load.incarnation() != options_.incarnation) {
    reply.mutable_load_failed()->set_term(term);
    reply.mutable_load_failed()->set_other_incarnation(true);
    reply.mutable_load_failed()->set_reason(
        absl::StrCat("the Load is for incarnation ", absl::Hex(load.incarnation()), " of ps ",
                     options_.index, ", which is ", absl::Hex(options_.incarnation), " now"));
    return session->Send(reply);
  }
  if (timeline() == term) {
    reply.mutable_loaded()->set_timeline(term);
    return session->Send(reply);
  }
  if (loading_ && loading_->term == term) {
    loading_->session = session;
    if (loading_->rows) loading_->rows->AskAt(session);
    return;
  }
  if (!load.checkpoint().empty() && !holder_.checkpoints().empty()) {
    const absl::Status ours = CheckInCheckpoints(load.checkpoint(), holder_.checkpoints());
    if (!ours.ok()) {
      reply.mutable_load_failed()->set_term(term);
      reply.mutable_load_failed()->set_reason(Text(ours));
      return session->Send(reply);
    }
  }
  LogInfo("loading", {{"term", TermText(term)},
                      {"from", load.checkpoint().empty() ? "seed" : load.checkpoint()}});
  promised_term_ = term;
  timeline_.reset();
  loading_.emplace();
  loading_->term = term;
  loading_->session = session;
  loading_->cut_step = load.cut_step();
  loading_->request = {.ps_index = options_.index,
                       .ps_count = load.ps_count(),
                       .job = load.job(),
                       .checkpoint = load.checkpoint(),
                       .manifest_checksum = load.manifest_checksum(),
                       .memory = options_.memory,
                       .workers = options_.workers,
                       .files = options_.files};
  if (!reading_load_) ReadLoad();
}

void ParameterServer::ReadLoad() {
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

void ParameterServer::OnLoadRead(uint64_t term, LoadOutcome outcome) {
  if (!outcome.not_seen) return FinishLoad(term, std::move(outcome));
  LogInfo("this machine does not see the checkpoint; requesting its rows from the coordinator");
  loading_->variables = std::move(outcome.variables);
  const auto filled = [this, term](const absl::Status& status) {
    // Posted, because this runs inside the RowFetch that FinishLoad destroys.
    options_.loop->Post(scope_.Guard([this, term, status] {
      if (!loading_ || loading_->term != term) return;
      LoadOutcome filled{.status = status,
                         .checkpoint_is_bad = !status.ok(),
                         .variables = std::move(loading_->variables)};
      if (status.ok()) filled.variables.store->SetApplied(loading_->cut_step);
      FinishLoad(term, std::move(filled));
    }));
  };
  loading_->rows = std::make_unique<RowFetch>(term, loading_->variables.store.get(), filled);
  if (const SessionPtr session = loading_->session.lock()) loading_->rows->AskAt(session);
}

void ParameterServer::FinishLoad(uint64_t term, LoadOutcome outcome) {
  const SessionPtr session = loading_->session.lock();
  loading_.reset();
  proto::ControlReply reply;
  if (term < promised_term_) {  // rule 1: claimed by another coordinator while it was being read
    reply.mutable_term_refused()->set_promised_term(promised_term_);
  } else if (!outcome.status.ok()) {
    LogError("load failed", {{"term", TermText(term)}, {"reason", Text(outcome.status)}});
    reply.mutable_load_failed()->set_term(term);
    reply.mutable_load_failed()->set_reason(Text(outcome.status));
    reply.mutable_load_failed()->set_checkpoint_is_bad(outcome.checkpoint_is_bad);
  } else {
    VariableStore* const store = outcome.variables.store.get();
    if (options_.on_memory_needs) options_.on_memory_needs(outcome.variables.at_times_bytes);
    timeline_.emplace(term, std::move(outcome.variables), options_);
    TakePlan();
    figures_.Loaded();
    LogInfo("timeline begins",
            {{"timeline", TermText(term)}, {"chunks", absl::StrCat(store->chunk_count())}});
    reply.mutable_loaded()->set_timeline(term);
  }
  if (session) session->Send(reply);
}

void ParameterServer::OnStop(const SessionPtr& session, uint64_t term) {
  proto::ControlReply reply;
  reply.mutable_stopping();
  session->Send(reply);
  LogFields fields = {{"term", TermText(term)}};
  if (timeline_) {
    // Tests check by these that every chunk has had every step once.
    const VariableStore::UpdateRange updates = store().updates();
    fields.emplace_back("lowest_updates", absl::StrCat(updates.lowest));
    fields.emplace_back("highest_updates", absl::StrCat(updates.highest));
  }
  Stopped(leaving_ ? "stopped by the coordinator: this ps may leave"
                   : "stopped by the coordinator: the job is over",
          fields);
}

void ParameterServer::Leave(Time grace) {
  if (stopped_ || leaving_) return;
  if (!timeline_) return Stopped("leaving");
  LogInfo("leaving: the coordinator is asked for a checkpoint first");
  leaving_ = true;
  grace_.Set(grace, [this] { Stopped("leaving without a checkpoint: the grace period is over"); });
  for (const auto& [id, session] : sessions_) {
    if (session->control && session->greeted) SendDeparting(session);
  }
  if (!Coordinated()) AwaitCoordinator();
}

void ParameterServer::AwaitCoordinator() {
  alone_.Set(kCoordinatorPatience, [this] {
    if (!Coordinated()) Stopped("leaving without a checkpoint: the coordinator is gone");
  });
}

void ParameterServer::SendDeparting(const SessionPtr& session) {
  proto::ControlReply reply;
  reply.mutable_departing();
  session->Send(reply);
}

void ParameterServer::Stopped(const std::string& why, LogFields fields) {
  if (std::exchange(stopped_, true)) return;
  LogInfo(why, std::move(fields));
  if (options_.on_stopped) options_.on_stopped();
}

}  // namespace shoal
