#include "coordinator/cuts/checkpointer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/checkpoint/cut_directory.h"
#include "common/files/durable_file.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

// A cut that takes longer reports what it waits for.
constexpr Time kSlowCut = std::chrono::seconds(5);
// Workers report within 50 ms.
constexpr Time kReportTryPeriod = std::chrono::milliseconds(20);
constexpr int kReportTries = 10;

absl::Status RemoveOld(CheckpointStore* store, int keep,
                       const absl::StatusOr<std::set<std::string>>& pinned) {
  const absl::Status removed = pinned.ok() ? store->RemoveOld(keep, *pinned) : pinned.status();
  for (const std::string& link : store->TakeFoundLinks()) {
    LogWarning(absl::StrCat(
        link,
        " is a symbolic link: Shoal reads checkpoints through it, but removes none. "
        "To let Shoal remove old checkpoints, replace the link by the directory itself"));
  }
  return removed;
}

}  // namespace

Checkpointer::Checkpointer(Options options) : options_(std::move(options)) {}

void Checkpointer::SetLast(const StoredCheckpoint& checkpoint) {
  last_ = checkpoint;
  if (checkpoint.manifest.finite()) last_finite_ = checkpoint;
  last_at_ = options_.loop->Now();
}

void Checkpointer::SetStored(const std::vector<StoredCheckpoint>& newest_first) {
  if (!newest_first.empty()) stored_ = newest_first.front();
  const auto finite =
      std::find_if(newest_first.begin(), newest_first.end(),
                   [](const StoredCheckpoint& each) { return each.manifest.finite(); });
  if (finite != newest_first.end()) last_finite_ = *finite;
}

void Checkpointer::Keep(Outcome outcome) {
  outcomes_.push_back(std::move(outcome));
  options_.wakeup->Raise();
}

// Lays the files out first, so that every ps finds them when the fence reaches it.
void Checkpointer::Begin(const Cut& cut) {
  cut_ = cut;
  peers_.clear();
  peers_.resize(options_.ps_count);
  parts_.clear();
  directory_.clear();
  all_accepted_ = committing_ = files_done_ = false;
  held_ = kept_ = cut.hold;
  marker_ = CutMarkerName(options_.coordinator_id, ++attempt_);
  began_ = options_.loop->Now();
  deadline_.Set(options_.deadline, [this] {
    NoteError("it was not complete in time");
    Cancel(last_error_);
  });
  scope_.Offload(
      Lane::kFiles,
      [store = options_.store, layout = options_.layout, step = cut.step, term = cut.term,
       marker = marker_]() -> absl::StatusOr<std::string> {
        SHOAL_ASSIGN_OR_RETURN(const std::string directory, store->CreateDirectory(step, term));
        absl::Status created = CreateCheckpointFiles(*layout, directory, store->files());
        if (created.ok()) created = WriteNewFile(directory + "/" + marker, "", store->files());
        if (created.ok()) return directory;
        store->Discard(directory);
        return created;
      },
      [this, attempt = attempt_](const absl::StatusOr<std::string>& directory) {
        if (!cut_.has_value() || attempt != attempt_) {  // cancelled meanwhile
          if (directory.ok()) RemoveDirectory(*directory);
          return;
        }
        if (directory.ok()) {
          directory_ = *directory;
          return Fence();
        }
        NoteError(std::string(directory.status().message()));
        // An evaluation needs no files.
        files_done_ = true;
        if (held_) return Fence();
        Cancel(last_error_);
      });
}

void Checkpointer::Fence() { options_.broadcast(FenceRequest()); }

proto::ControlRequest Checkpointer::FenceRequest() const {
  proto::ControlRequest request;
  proto::Fence* fence = request.mutable_fence();
  fence->set_timeline(cut_->timeline);
  fence->set_cut_step(cut_->step);
  fence->set_directory(directory_);
  fence->set_hold(cut_->hold);
  fence->set_marker(marker_);
  return request;
}

void Checkpointer::Resend(int ps) {
  if (!cut_.has_value()) return;
  if (!directory_.empty() || files_done_) options_.send(ps, FenceRequest());
  if (peers_[ps].fetch != nullptr) peers_[ps].fetch->Resend();
}

void Checkpointer::OnReply(int ps, const proto::ControlReply& reply) {
  if (!cut_.has_value()) return;
  const auto all = [this](bool Peer::*fact) {
    return std::all_of(peers_.begin(), peers_.end(),
                       [fact](const Peer& peer) { return peer.*fact; });
  };
  // Term and step identify a cut.
  const auto of_this = [this](const auto& answer) {
    return answer.term() == cut_->term && answer.cut_step() == cut_->step;
  };
  switch (reply.kind_case()) {
    case proto::ControlReply::kFenceAccepted:
      if (!of_this(reply.fence_accepted())) return;
      peers_[ps].accepted = true;
      if (!all_accepted_ && all(&Peer::accepted)) {
        all_accepted_ = true;
        Keep(Accepted{cut_->step});
      }
      return;
    case proto::ControlReply::kFenceRejected:
      if (of_this(reply.fence_rejected())) OnRejected(ps, reply.fence_rejected());
      return;
    case proto::ControlReply::kCutReady:
      // A ps accepts the cut before it is ready, and repeats both on a new stream.
      if (!of_this(reply.cut_ready()) || !peers_[ps].accepted || peers_[ps].ready) return;
      peers_[ps].ready = true;
      if (all(&Peer::ready)) Keep(Ready{cut_->step});
      return;
    case proto::ControlReply::kWritten:
      if (of_this(reply.written()) && peers_[ps].accepted) OnWritten(ps, reply.written());
      return;
    case proto::ControlReply::kCutRows:
      if (of_this(reply.cut_rows()) && peers_[ps].fetch != nullptr)
        peers_[ps].fetch->OnRows(reply.cut_rows());
      return;
    default:
      return;
  }
}

// Rule 6 gives a ps two reasons to reject a fence. Another process has sent a newer fence under
// this term; a fresh term cures that. Or the ps has applied a step of the job at or above the cut.
// Any other rejection is an error, and does not move the next cut.
void Checkpointer::OnRejected(int ps, const proto::FenceRejected& rejected) {
  const uint64_t highest = rejected.highest_step();
  const std::string who = absl::StrCat("ps ", ps, ": ");
  if (rejected.superseded()) {
    Keep(Superseded());
    return Cancel(who + Printable(rejected.reason(), kMaxReasonBytes));
  }
  const bool known = cut_->total_steps > 0;
  if (highest >= cut_->step && (!known || highest < cut_->total_steps))
    return Cancel(who + Printable(rejected.reason(), kMaxReasonBytes), highest);
  NoteError(absl::StrCat(who, "it wrongly rejects a cut at step ", cut_->step,
                         ": it has applied step ", highest,
                         known ? absl::StrCat(" of a job with ", cut_->total_steps, " steps") : "",
                         "; that ps is broken or of another version: restart it"));
  Cancel(last_error_);
}

void Checkpointer::OnWritten(int ps, const proto::Written& written) {
  if (files_done_ || committing_ || peers_[ps].written) return;
  if (written.not_seen()) return Fetch(ps);
  if (!written.error().empty())
    return OnParts(ps, absl::UnavailableError(PrintableLines(written.error(), kMaxReasonBytes)));
  std::vector<WrittenPart> parts;
  for (const proto::WrittenRange& range : written.ranges()) {
    parts.push_back({range.file(), range.offset_bytes(), range.size_bytes(), range.crc32c()});
  }
  OnParts(ps, std::move(parts));
}

// The ps does not see the directory: it sends its rows over the stream.
void Checkpointer::Fetch(int ps) {
  if (peers_[ps].fetch != nullptr) return;
  kept_ = true;
  peers_[ps].fetch = std::make_unique<CutFetch>(CutFetch::Options{
      .loop = options_.loop,
      .files = options_.store->files(),
      .layout = options_.layout,
      .variables = options_.variables,
      .shard_map = options_.shard_map,
      .slots = options_.manifest.slots,
      .ps = ps,
      .directory = directory_,
      .cut_step = cut_->step,
      .send = [this, ps](const proto::ControlRequest& request) { options_.send(ps, request); },
      .done =
          [this, ps](absl::StatusOr<std::vector<WrittenPart>> parts) {
            peers_[ps].fetch.reset();
            OnParts(ps, std::move(parts));
          }});
}

void Checkpointer::OnParts(int ps, absl::StatusOr<std::vector<WrittenPart>> parts) {
  if (!parts.ok()) {
    NoteError(absl::StrCat("ps ", ps, ": ", std::string(parts.status().message())));
    RemoveDirectory(directory_);
    files_done_ = true;
    for (Peer& peer : peers_) peer.fetch.reset();
    if (!held_) Cancel(last_error_);
    return;
  }
  peers_[ps].written = true;
  parts_.insert(parts_.end(), parts->begin(), parts->end());
  if (std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.written; }))
    AwaitReports(kReportTries);
}

void Checkpointer::AwaitReports(int tries) {
  if (tries == 0 || !options_.all_reported || options_.all_reported(cut_->step)) return Commit();
  options_.loop->CallAfter(kReportTryPeriod, scope_.Guard([this, attempt = attempt_, tries] {
    if (cut_.has_value() && attempt == attempt_) AwaitReports(tries - 1);
  }));
}

// Section 6.3: verify the files, write the manifest. Only this makes a checkpoint.
void Checkpointer::Commit() {
  committing_ = true;
  Manifest manifest = options_.manifest;
  manifest.timeline = cut_->timeline;
  manifest.cut_step = cut_->step;
  manifest.total_steps = cut_->total_steps;
  manifest.epoch = cut_->epoch;
  manifest.epoch_position = cut_->epoch_position;
  if (options_.epoch_sums && cut_->training_examples > 0)
    manifest.epoch_sums = options_.epoch_sums();
  manifest.training_examples = cut_->training_examples;
  manifest.test_examples = cut_->test_examples;
  scope_.Offload(
      Lane::kFiles,
      [store = options_.store, layout = options_.layout, texts = options_.texts,
       keep = options_.keep, pinned = options_.pinned, directory = directory_, marker = marker_,
       parts = parts_, manifest] {
        (void)store->files()->RemoveFile(directory + "/" + marker);
        auto stored = store->Commit(directory, *layout, parts, texts, manifest);
        if (!stored.ok()) {
          store->Discard(directory);
        } else if (const absl::Status removed = RemoveOld(store, keep, pinned()); !removed.ok()) {
          LogWarning("old checkpoints stay: " + std::string(removed.message()));
        }
        return stored;
      },
      [this, attempt = attempt_, began = began_](const absl::StatusOr<StoredCheckpoint>& stored) {
        if (stored.ok()) {
          ++committed_;
          last_error_.clear();
          failing_since_.reset();
          last_duration_ = options_.loop->Now() - began;
          SetLast(*stored);
          Keep(Committed{*stored});
        } else {
          NoteError(std::string(stored.status().message()));
        }
        // The cut was cancelled before this.
        if (!cut_.has_value() || attempt != attempt_) return;
        committing_ = false;
        files_done_ = true;
        if (!stored.ok() && !held_) return Cancel(last_error_);
        // The deadline does not apply to an evaluation.
        if (stored.ok()) deadline_.Cancel();
        MaybeIdle();
      });
}

void Checkpointer::Release() {
  if (!cut_.has_value() || !held_) return;
  held_ = false;
  MaybeIdle();
}

void Checkpointer::SendRelease(uint64_t cut_step) {
  if (!std::exchange(kept_, false)) return;
  proto::ControlRequest request;
  request.mutable_release()->set_cut_step(cut_step);
  options_.broadcast(request);
}

// Ends the cut only once the files are done. Before that the ps must keep the cut: a ps that does
// not see the directory still sends rows, and its message about that may be on the way.
void Checkpointer::MaybeIdle() {
  if (!cut_.has_value() || !files_done_ || held_ || committing_) return;
  SendRelease(cut_->step);
  deadline_.Cancel();
  cut_.reset();
  options_.wakeup->Raise();
}

void Checkpointer::NoteError(const std::string& why) {
  last_error_ = why;
  ++failures_;
  if (!failing_since_.has_value()) failing_since_ = options_.loop->Now();
  // The Checkpointer does not know whether the job continues or stops.
  LogError(
      absl::StrCat("no checkpoint: ", why, "; retrying",
                   last_.has_value() ? absl::StrCat("; the newest is ", last_->directory) : ""));
  Keep(Failed{why});
}

bool Checkpointer::writing() const {
  return cut_.has_value() && !files_done_ &&
         std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.ready; });
}

uint64_t Checkpointer::headway() const {
  uint64_t facts = 0;
  for (const Peer& peer : peers_) facts += peer.accepted + peer.ready + peer.written;
  return facts;
}

std::string Checkpointer::Waiting(Time now) const {
  if (!cut_.has_value() || now - began_ < kSlowCut || (files_done_ && !committing_)) return "";
  const auto lacking = [this](bool Peer::*fact) {
    std::vector<int> missing;
    for (int ps = 0; ps < options_.ps_count; ++ps) {
      if (!(peers_[ps].*fact)) missing.push_back(ps);
    }
    return missing;
  };
  const auto named = [](const std::vector<int>& ps, const char* what) {
    return absl::StrCat("ps ", absl::StrJoin(ps, ", "), what);
  };
  std::string what;
  if (committing_) {
    what = "the files to be read back";
  } else if (directory_.empty() && !files_done_) {
    what = "the files to be laid out";
  } else if (const auto missing = lacking(&Peer::accepted); !missing.empty()) {
    what = named(missing, " to accept it");
  } else if (const auto not_ready = lacking(&Peer::ready); !not_ready.empty()) {
    what = named(not_ready, absl::StrCat(" to have all steps below ", cut_->step).c_str());
  } else {
    what = named(lacking(&Peer::written), " to write");
  }
  const auto seconds = WholeSeconds(now - began_);
  return absl::StrCat("the cut at step ", cut_->step, ", for ", seconds, " s: ", what);
}

void Checkpointer::RemoveDirectory(const std::string& directory) {
  options_.loop->Offload(
      Lane::kFiles, [store = options_.store, directory] { store->Discard(directory); }, [] {});
}

void Checkpointer::Cancel(const std::string& why, std::optional<uint64_t> highest_step) {
  if (!cut_.has_value()) return;
  const std::string text = absl::StrCat("cancelling the cut at step ", cut_->step, ": ", why);
  if (why == last_error_) {  // NoteError has logged it
    LogInfo(text);
  } else {
    LogWarning(text);
  }
  Drop(why, highest_step);
}

void Checkpointer::Replace(const std::string& why) {
  if (!cut_.has_value()) return;
  LogInfo(absl::StrCat("the cut at step ", cut_->step, " is replaced by an earlier one: ", why));
  Drop(why, std::nullopt);
}

void Checkpointer::Drop(const std::string& why, std::optional<uint64_t> highest_step) {
  const uint64_t step = cut_->step;
  if (!directory_.empty() && !committing_ && !files_done_) {
    RemoveDirectory(directory_);
  }
  deadline_.Cancel();
  for (Peer& peer : peers_) peer.fetch.reset();
  cut_.reset();
  committing_ = false;
  Keep(Cancelled{step, why, highest_step});
}

}  // namespace shoal
