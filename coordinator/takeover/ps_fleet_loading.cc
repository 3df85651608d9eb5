// Loading in a PsFleet, when the ps share no timeline: the newest verified checkpoint, or the seed.

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/crc32c.h"
#include "common/base/term.h"
#include "common/base/text/printable.h"
#include "common/log/logging.h"
#include "coordinator/takeover/ps_fleet.h"

namespace shoal {
namespace {

// Max row requests of a ps in progress. A ps requests a few at a time, and repeats them over a new
// stream.
constexpr int kMaxRowsWanted = 64;

}  // namespace

// Section 7.4: looks for the newest verified checkpoint that is not known to be bad.
void PsFleet::LookForCheckpoint() {
  phase_ = Phase::kLooking;
  phase_since_ = options_.loop->Now();
  checkpoints_.Find(term_, [this, term = term_](const CheckpointSearch::Found& found) {
    if (closed_ || phase_ != Phase::kLooking || term != term_) return;
    for (const std::string& problem : found.problems) LogWarning(problem);
    if (!found.status.ok()) return Fail(found.status);
    // Another coordinator may have led meanwhile. A run that continues from its checkpoint needs a
    // higher term.
    if (found.highest_timeline > term_) {
      highest_term_number_ = std::max(highest_term_number_, TermNumber(found.highest_timeline));
      return Claim();
    }
    // Empty if the job was extended: it then continues from this checkpoint.
    if (found.end.has_value()) return KeepEnd(*found.end);
    LoadAll(found.newest);
  });
}

// Rule 3, the coordinator's side: the claimed term opens the timeline.
void PsFleet::LoadAll(const std::optional<StoredCheckpoint>& checkpoint) {
  phase_ = Phase::kLoading;
  phase_since_ = options_.loop->Now();
  loading_ = checkpoint;
  rows_failure_ = absl::OkStatus();
  for (Peer& peer : peers_) peer.rows_wanted = 0;
  if (checkpoint.has_value())
    rows_ = std::make_unique<CheckpointRows>(options_.loop, options_.store, *checkpoint);
  LogInfo(checkpoint.has_value() ? "loading checkpoint " + checkpoint->directory
                                 : std::string("initializing the variables from the seed"));
  for (int ps = 0; ps < size(); ++ps) SendLoad(ps);
}

void PsFleet::SendLoad(int ps) {
  proto::ControlRequest request;
  proto::Load* load = request.mutable_load();
  load->set_incarnation(peers_[ps].hello->incarnation());
  load->set_job(options_.job_text);
  load->set_ps_count(size());
  if (loading_.has_value()) {
    const std::string manifest = loading_->manifest.ToText();
    load->set_checkpoint(loading_->directory);
    load->set_manifest_checksum(Crc32c(manifest));
    load->set_cut_step(loading_->manifest.cut_step);
  }
  Send(ps, request);
}

void PsFleet::OnRowsWanted(int ps, const proto::RowsWanted& wanted) {
  if (rows_ == nullptr || wanted.term() != term_) return;
  if (peers_[ps].rows_wanted == kMaxRowsWanted) return;
  ++peers_[ps].rows_wanted;
  proto::ControlRequest request;
  request.mutable_rows()->set_tensor(wanted.tensor());
  request.mutable_rows()->set_offset_bytes(wanted.offset_bytes());
  rows_->Read({wanted.tensor(), wanted.offset_bytes(), wanted.size_bytes()},
              [this, ps, request](absl::StatusOr<std::string> values) mutable {
                --peers_[ps].rows_wanted;
                if (values.ok()) {
                  request.mutable_rows()->set_values(*std::move(values));
                } else {
                  rows_failure_ = values.status();
                  request.mutable_rows()->set_error(std::string(values.status().message()));
                }
                Send(ps, request);
              });
}

void PsFleet::OnLoaded(int ps) {
  if (peers_[ps].loaded) return;  // answers a repeated Load
  peers_[ps].loaded = true;
  for (const Peer& peer : peers_) {
    if (!peer.loaded) return;
  }
  if (rows_ == nullptr) return OpenTimeline();
  rows_->Verify([this](const absl::Status& whole) {
    if (whole.ok()) return OpenTimeline();
    checkpoints_.MarkBad(loading_->directory, whole);
    StartOver(std::string(whole.message()));
  });
}

void PsFleet::OpenTimeline() {
  rows_.reset();
  phase_ = Phase::kLeading;
  phase_since_ = options_.loop->Now();
  timeline_ = term_;
  Opened opened{.timeline = timeline_};
  if (loading_.has_value()) {
    opened.base = loading_->manifest.cut_step;
    opened.checkpoint = loading_->directory;
    opened.loaded = loading_;
  }
  options_.on_opened(opened);
}

void PsFleet::OnLoadFailed(const proto::LoadFailed& failed) {
  const std::string reason = PrintableLines(failed.reason(), kMaxReasonBytes);
  if (failed.other_incarnation()) return StartOver(reason);
  if (failed.checkpoint_is_bad() && loading_.has_value()) {
    checkpoints_.MarkBad(loading_->directory, WhyBad(failed, reason));
    return StartOver(reason);
  }
  Fail(absl::FailedPreconditionError("a ps cannot load the job: " + reason));
}

// A ps that gets its rows from the coordinator only repeats why the coordinator lacks them.
absl::Status PsFleet::WhyBad(const proto::LoadFailed& failed, const std::string& reason) const {
  if (!rows_failure_.ok()) return rows_failure_;
  const std::string why = "a ps: " + reason;
  return failed.checkpoint_unread() ? absl::UnavailableError(why) : absl::DataLossError(why);
}

}  // namespace shoal
