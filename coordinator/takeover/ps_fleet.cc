#include "coordinator/takeover/ps_fleet.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/base/version.h"
#include "common/log/logging.h"
#include "coordinator/takeover/claim_errors.h"

namespace shoal {
namespace {

constexpr Time kProbePeriod = std::chrono::seconds(1);
// A timeline that lasted this long resets the pauses.
constexpr Time kSettled = std::chrono::seconds(1);
// Longer than the 10 s after which a ps forgets a silent coordinator.
constexpr Time kHolderPatience = std::chrono::seconds(12);

proto::ControlRequest StopRequest() {
  proto::ControlRequest request;
  request.mutable_stop();
  return request;
}

}  // namespace

PsFleet::PsFleet(Options options)
    : options_(std::move(options)),
      checkpoints_({.loop = options_.loop,
                    .store = options_.store,
                    .job_text = options_.job_text,
                    .job_fingerprint = options_.job_fingerprint,
                    .may_begin_anew = options_.may_begin_anew,
                    .make_first = options_.make_first,
                    .end_of_run = options_.end_of_run}),
      ends_({.loop = options_.loop,
             .store = options_.store,
             .job_fingerprint = options_.job_fingerprint,
             .end_of_run = options_.end_of_run}),
      claims_(std::chrono::milliseconds(50), std::chrono::seconds(1), options_.coordinator_id) {}

void PsFleet::Start() {
  phase_since_ = options_.loop->Now();
  peers_.resize(options_.addresses.size());
  // Terms must sort above every stored timeline, also when all ps have forgotten theirs.
  checkpoints_.List([this](const absl::StatusOr<CheckpointSearch::Stored>& found) {
    if (closed_) return;
    if (!found.ok()) return Fail(found.status());
    options_.on_stored(found->newest_first);
    highest_term_number_ = std::max(highest_term_number_, TermNumber(found->highest_timeline));
    for (int ps = 0; ps < size(); ++ps) {
      peers_[ps].link = std::make_unique<PsLink>(PsLink::Options{
          .loop = options_.loop,
          .network = options_.network,
          .index = ps,
          .address = options_.addresses[ps],
          .seed = options_.coordinator_id + uint64_t{977} * ps,
          .limits = ReplyLimits(),
          .on_hello = [this](int i, const proto::ServerHello& hello) { OnHello(i, hello); },
          .on_reply = [this](int i, const proto::ControlReply& reply) { OnReply(i, reply); },
          .on_lost =
              [this](int i, const absl::Status&) {
                if (dismissed_) return;
                LogWarning(absl::StrCat("lost ps ", i, " at ", options_.addresses[i], ": ",
                                        peers_[i].link->last_error()));
              },
          .is_quiet = [this](int i) { return IsQuiet(i); }});
    }
    Claim();
    Probe();
  });
}

bool PsFleet::IsQuiet(int ps) const {
  return phase_ == Phase::kLeading && !dismissed_ && peers_[ps].departure == Departure::kNone &&
         (options_.is_cutting == nullptr || !options_.is_cutting());
}

std::vector<FieldLimit> PsFleet::ReplyLimits() const {
  return {{.kind = proto::ControlReply::kClaimedFieldNumber,
           .field = proto::Claimed::kAppliedAfterBaseFieldNumber,
           .max = options_.max_applied_after_base,
           .packed = true},
          {.kind = proto::ControlReply::kWrittenFieldNumber,
           .field = proto::Written::kRangesFieldNumber,
           .max = options_.max_written_ranges}};
}

std::vector<int> PsFleet::ReleaseDeparting() {
  std::vector<int> may_leave;
  for (int ps = 0; ps < size(); ++ps) {
    if (peers_[ps].departure != Departure::kAsked) continue;
    SetDeparture(peers_[ps], Departure::kAllowed);
    Send(ps, StopRequest());
    may_leave.push_back(ps);
  }
  return may_leave;
}

void PsFleet::SetDeparture(Peer& peer, Departure departure) {
  if (peer.departure == departure) return;  // repeated over a new stream
  peer.departure = departure;
  peer.departure_since = options_.loop->Now();
}

std::optional<Time> PsFleet::DepartureSince(Departure departure) const {
  std::optional<Time> since;
  for (const Peer& peer : peers_) {
    if (peer.departure == departure)
      since = std::min(since.value_or(Time::max()), peer.departure_since);
  }
  return since;
}

void PsFleet::Dismiss() {
  dismissed_ = true;
  Broadcast(StopRequest());
}

void PsFleet::Close() {
  closed_ = true;
  ends_.Stop();
  rows_.reset();
  proto::ControlRequest request;
  request.set_term(term_);
  request.mutable_resign();
  for (Peer& peer : peers_) {
    if (peer.link != nullptr) peer.link->Finish(request);
  }
  probe_.Cancel();
  claim_again_.Cancel();
}

void PsFleet::Send(int ps, proto::ControlRequest request) {
  Peer& peer = peers_[ps];
  if (!peer.link->connected()) return;
  if (request.has_claim()) {
    peer.claim_sent = term_;
  } else if (peer.claim_sent != term_) {
    // OnHello claims, unless the next claim waits for its pause. The job may end meanwhile.
    Send(ps, ClaimRequest());
  }
  request.set_term(term_);
  peer.link->Send(request);
}

void PsFleet::Broadcast(const proto::ControlRequest& request) {
  for (int ps = 0; ps < size(); ++ps) Send(ps, request);
}

// Section 1: a fresh term has number 1 + the highest known. It never wraps.
bool PsFleet::TakeTerm() {
  if (highest_term_number_ >= kMaxTermNumber) {
    Fail(absl::FailedPreconditionError(
        absl::StrCat("there is no term above ", TermText(term_),
                     " left for this job; restart its ps, and continue with another --run_dir")));
    return false;
  }
  term_ = MakeTerm(++highest_term_number_, options_.coordinator_id);
  return true;
}

void PsFleet::BeginClaiming() {
  rows_.reset();
  if (options_.lock != nullptr) options_.lock->Pause();
  timeline_ = 0;
  phase_ = Phase::kClaiming;
  phase_since_ = options_.loop->Now();
  for (Peer& peer : peers_) peer.claimed_now = peer.loaded = false;
}

void PsFleet::Claim() {
  BeginClaiming();
  claim_again_.Cancel();
  if (TakeTerm()) Broadcast(ClaimRequest());
}

void PsFleet::ClaimAfter(Time pause) {
  if (!claim_again_.pending()) claim_again_.Set(pause, [this] { Claim(); });
}

proto::ControlRequest PsFleet::ClaimRequest() const {
  proto::ControlRequest request;
  request.mutable_claim()->set_version(kVersion);
  request.mutable_claim()->set_job_fingerprint(options_.job_fingerprint);
  request.mutable_claim()->set_training_examples(options_.training_examples());
  *request.mutable_claim()->mutable_claimant() = options_.self;
  request.mutable_claim()->set_leads(phase_ != Phase::kClaiming);
  request.mutable_claim()->set_take_over(options_.take_over);
  if (phase_ == Phase::kLeading) request.mutable_claim()->set_done_below(options_.done_below());
  return request;
}

void PsFleet::RenewTerm() {
  if (TakeTerm()) Broadcast(ClaimRequest());
}

void PsFleet::ReopenOldStreams() {
  for (const Peer& peer : peers_) peer.link->ReopenIfQuiet();
}

// Section 7.1: the claim repeated every second finds lost ps and brings applied sets. While
// claiming, and while no worker trains, this also watches the store (7.2).
void PsFleet::Probe() {
  probe_.Set(kProbePeriod, [this] { Probe(); });
  Broadcast(ClaimRequest());
  if (phase_ == Phase::kClaiming || (phase_ == Phase::kLeading && options_.nobody_trains())) {
    LookForEnd();
  }
}

void PsFleet::LookForEnd() {
  ends_.Look([this](const RunEnd& end) {
    if (phase_ == Phase::kClaiming || phase_ == Phase::kLeading) KeepEnd(end);
  });
}

void PsFleet::KeepEnd(const RunEnd& end) {
  end_ = end;
  options_.wakeup->Raise();
}

void PsFleet::OnHello(int ps, const proto::ServerHello& hello) {
  Peer& peer = peers_[ps];
  if (const absl::Status same = CheckVersion(hello.version(), NameOf(ps)); !same.ok()) {
    return Fail(same);
  }
  if (hello.index() != static_cast<uint32_t>(ps)) {
    return Fail(absl::FailedPreconditionError(absl::StrCat(
        "the process at ", options_.addresses[ps], " says it is ps ", hello.index(),
        ", but the cluster spec has ps ", ps, " there; give every process the same cluster spec")));
  }
  const bool restarted = peer.hello.has_value() && peer.hello->incarnation() != hello.incarnation();
  if (restarted) {
    ++peer.restarts;
    peer.departure = Departure::kNone;
    peer.held.reset();
  }
  peer.hello = hello;
  peer.claimed_now = false;
  peer.claim_sent = 0;
  LogInfo(absl::StrCat("ps ", ps, " at ", options_.addresses[ps], " is reachable"));
  if (hello.promised_term() > term_)
    return OnTermRejected(ps, hello.promised_term(), hello.claimant());
  if (phase_ != Phase::kClaiming && restarted) {
    return StartOver(absl::StrCat("ps ", ps, " was started again and has lost its variables"));
  }
  if (dismissed_) return Send(ps, StopRequest());  // the first one is lost, or was not sent
  Send(ps, ClaimRequest());
  if (phase_ == Phase::kLoading && !peer.loaded) SendLoad(ps);
  if (phase_ == Phase::kLeading) options_.on_reconnected(ps);
}

void PsFleet::OnReply(int ps, const proto::ControlReply& reply) {
  switch (reply.kind_case()) {
    case proto::ControlReply::kClaimed:
      return OnClaimed(ps, reply.claimed());
    case proto::ControlReply::kTermRejected:
      return OnTermRejected(ps, reply.term_rejected().promised_term(),
                            reply.term_rejected().claimant());
    case proto::ControlReply::kClaimRejected:
      return OnClaimRejected(ps, reply.claim_rejected());
    case proto::ControlReply::kLoaded:
      if (phase_ == Phase::kLoading && reply.loaded().timeline() == term_) OnLoaded(ps);
      return;
    case proto::ControlReply::kLoadFailed:
      if (phase_ == Phase::kLoading && reply.load_failed().term() == term_)
        OnLoadFailed(reply.load_failed());
      return;
    case proto::ControlReply::kRowsWanted:
      return OnRowsWanted(ps, reply.rows_wanted());
    case proto::ControlReply::kDeparting:
      SetDeparture(peers_[ps], Departure::kAsked);
      return options_.on_reply(ps, reply);
    default:
      return options_.on_reply(ps, reply);
  }
}

void PsFleet::OnClaimed(int ps, const proto::Claimed& claimed) {
  Peer& peer = peers_[ps];
  peer.claimed = claimed;
  peer.held.reset();
  if (phase_ == Phase::kLeading) {
    if (claimed.timeline() != timeline_) {
      StartOver(absl::StrCat("ps ", ps, " is in timeline ", TermText(claimed.timeline()),
                             ", not in ", TermText(timeline_)));
    } else {
      options_.on_applied(ps, claimed);
    }
    return;
  }
  if (phase_ != Phase::kClaiming) return;
  if (claimed.timeline() != 0 && claimed.job_fingerprint() != options_.job_fingerprint)
    return Fail(PsOfAnotherJob(NameOf(ps), claimed, options_.job_fingerprint));
  if (claimed.promised_term() != term_ || peer.claimed_now) return;
  if (claim_again_.pending()) return;  // another coordinator outbid this term
  peer.claimed_now = true;
  for (const Peer& other : peers_) {
    if (!other.claimed_now) return;
  }
  Decide();
}

// Rule 1, the coordinator's side. While claiming, a rejection is ordinary: another coordinator was
// faster. While leading it is final. A term that no coordinator can have reached is not outbid:
// otherwise no higher term would soon be left.
void PsFleet::OnTermRejected(int ps, uint64_t promised_term, const proto::Claimant& by) {
  if (promised_term <= term_) return;  // answers an older claim of ours
  if (!PlausibleTermNumber(TermNumber(promised_term), highest_term_number_)) {
    return Fail(PsWithImplausibleTerm(
        NameOf(ps), {.promised = promised_term,
                     .highest = MakeTerm(highest_term_number_, options_.coordinator_id)}));
  }
  highest_term_number_ = std::max(highest_term_number_, TermNumber(promised_term));
  if (phase_ != Phase::kClaiming)
    return Fail(FencedOff({.promised = promised_term, .own = term_}, by));
  // The pause differs between coordinators. Otherwise two of them could outbid each other for ever.
  const Time pause = std::chrono::milliseconds(20 + options_.coordinator_id % 180);
  ClaimAfter(std::max(pause, claims_.Next()));
}

// Another run's coordinator holds the ps as long as it renews its claims. A killed one does not. So
// if the ps still rejects it after kHolderPatience, its holder is alive.
void PsFleet::OnClaimRejected(int ps, const proto::ClaimRejected& rejected) {
  if (rejected.term() != term_) return;
  if (phase_ != Phase::kClaiming)
    return Fail(FencedOff({.promised = rejected.term(), .own = term_}, rejected.holder()));
  Peer& peer = peers_[ps];
  const Time now = options_.loop->Now();
  if (!peer.held.has_value()) peer.held = Held{.since = now};
  peer.held->rejection = rejected;
  if (now - peer.held->since < kHolderPatience) return;
  Fail(PsInUse(NameOf(ps), rejected.holder()));
}

void PsFleet::Decide() {
  if (options_.lock == nullptr) return Resume();
  std::vector<uint64_t> incarnations;
  for (const Peer& peer : peers_) incarnations.push_back(peer.hello->incarnation());
  options_.lock->Acquire(
      std::move(incarnations), scope_.Guard([this, term = term_](const absl::Status& status) {
        // After a rejection of this term it claims again. Leading under the term would be void.
        if (closed_ || phase_ != Phase::kClaiming || term != term_ || claim_again_.pending())
          return;
        if (!status.ok()) return Fail(status);
        const bool all = std::all_of(peers_.begin(), peers_.end(),
                                     [](const Peer& peer) { return peer.claimed_now; });
        if (all) Resume();  // otherwise a ps was restarted meanwhile and is claimed again
      }));
}

void PsFleet::Resume() {
  if (std::exchange(restore_, false)) return LookForCheckpoint();
  const uint64_t first = peers_[0].claimed->timeline();
  // Another number of ps means another shard map: the ps must load a checkpoint.
  const bool agree = std::all_of(peers_.begin(), peers_.end(), [this, first](const Peer& peer) {
    return peer.claimed->timeline() == first &&
           peer.claimed->shard_map_fingerprint() == options_.shard_map_fingerprint;
  });
  if (agree && first != 0) return Adopt();
  LookForCheckpoint();
}

// Section 7.3.
void PsFleet::Adopt() {
  phase_ = Phase::kLeading;
  phase_since_ = options_.loop->Now();
  timeline_ = peers_[0].claimed->timeline();
  Applied applied = AppliedEverywhere();
  const Opened opened{.timeline = timeline_,
                      .adopted = true,
                      .base = applied.base,
                      .done_after_base = std::move(applied.after_base)};
  LogInfo(absl::StrCat("adopted timeline ", TermText(timeline_), ": all steps below ", opened.base,
                       " are applied"));
  options_.on_opened(opened);
}

PsFleet::Applied PsFleet::AppliedEverywhere() const {
  Applied applied;
  std::vector<std::set<uint64_t>> after(size());
  int lowest = 0;
  for (int ps = 0; ps < size(); ++ps) {
    const proto::Claimed& claimed = *peers_[ps].claimed;
    after[ps] = {claimed.applied_after_base().begin(), claimed.applied_after_base().end()};
    if (claimed.base() < peers_[lowest].claimed->base()) lowest = ps;
  }
  applied.base = peers_[lowest].claimed->base();
  for (const uint64_t step : after[lowest]) {
    bool everywhere = true;
    for (int ps = 0; ps < size() && everywhere; ++ps) {
      everywhere = step < peers_[ps].claimed->base() || after[ps].contains(step);
    }
    if (everywhere) applied.after_base.push_back(step);
  }
  return applied;
}

uint64_t PsFleet::HighestUpdates() const {
  uint64_t highest = 0;
  for (const Peer& peer : peers_) {
    if (peer.claimed.has_value()) highest = std::max(highest, peer.claimed->highest_updates());
  }
  return highest;
}

void PsFleet::StartOver(const std::string& why) {
  LogWarning(absl::StrCat("timeline ", TermText(timeline_), " is over: ", why));
  if (phase_ == Phase::kLeading) {
    if (options_.loop->Now() - phase_since_ >= kSettled) {
      claims_.Reset();
      started_over_ = false;
    }
    options_.on_over(why);
  }
  if (!std::exchange(started_over_, true)) return Claim();
  BeginClaiming();
  ClaimAfter(claims_.Next());
}

void PsFleet::Restore(const std::string& why) {
  restore_ = true;
  StartOver(why);
}

void PsFleet::Fail(const absl::Status& status) {
  Close();
  options_.on_failed(status);
}

std::optional<PsFleet::Wait> PsFleet::WaitFor(int ps) const {
  const Peer& peer = peers_[ps];
  if (peer.link == nullptr) return std::nullopt;
  if (!peer.link->connected()) return Wait{"not reachable", peer.link->since()};
  if (phase_ == Phase::kClaiming && peer.held.has_value())
    return Wait{"in use by another run", peer.held->since};
  if (phase_ == Phase::kClaiming && !peer.claimed_now)
    return Wait{"has not answered the claim", phase_since_};
  if (phase_ == Phase::kLoading && !peer.loaded) return Wait{"loading its variables", phase_since_};
  return std::nullopt;
}

std::vector<std::string> PsFleet::Waiting() const {
  if (closed_) return {};
  std::vector<std::string> lines;
  const Time now = options_.loop->Now();
  for (int ps = 0; ps < size(); ++ps) {
    const std::optional<Wait> wait = WaitFor(ps);
    if (!wait.has_value()) continue;
    lines.push_back(absl::StrCat("ps ", ps, " at ", options_.addresses[ps], ": ", wait->why,
                                 " for ", WholeSeconds(now - wait->since), " s"));
    const PsLink& link = *peers_[ps].link;
    if (link.connected() && peers_[ps].held.has_value()) {
      const proto::ClaimRejected& rejection = peers_[ps].held->rejection;
      absl::StrAppend(&lines.back(), ": ", DescribeClaimant(rejection.holder()),
                      ", which the ps has last heard ", rejection.silent_ms() / 1000,
                      " s ago; it counts as gone after ", WholeSeconds(kHolderPatience), " s");
    }
    if (link.connected()) continue;
    absl::StrAppend(&lines.back(), " (",
                    link.last_error().empty() ? "connecting" : link.last_error(), ")");
  }
  const bool all_loaded =
      phase_ == Phase::kLoading &&
      std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.loaded; });
  if (phase_ == Phase::kLooking || all_loaded) {
    lines.push_back(
        absl::StrCat("verifying checkpoints for ", WholeSeconds(now - phase_since_), " s"));
  }
  return lines;
}

}  // namespace shoal
