#include "ps/cuts/cuts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/log/logging.h"
#include "proto/parameter_server.pb.h"

namespace shoal {
namespace {

// Max distance of a cut from base. Leases, and the steps added until a Fence arrives, stay far
// below it. A cut above it would keep every later cut of its term waiting for ever.
constexpr uint64_t kMaxStepsAhead = uint64_t{1} << 32;

}  // namespace

absl::Status Cuts::CheckPlausible(const CutPlace& place) const {
  const uint64_t base = store_->base();
  if (place.cut_step > base && place.cut_step - base > kMaxStepsAhead) {
    return absl::InvalidArgumentError(
        absl::StrCat("the step ", place.cut_step, " of the cut is too high: ps ", ps_index_,
                     " has applied all steps below ", base, ", and accepts cuts up to ",
                     kMaxStepsAhead, " above that"));
  }
  return place.directory.empty() ? absl::OkStatus() : CheckCutNames(place);
}

void Cuts::OnFence(const SessionPtr& session, uint64_t term, const proto::Fence& fence,
                   const std::string& checkpoints) {
  const CutPlace place{.cut_step = fence.cut_step(),
                       .term = term,
                       .directory = fence.directory(),
                       .marker = fence.marker(),
                       .checkpoints = checkpoints};
  proto::ControlReply reply;
  const auto reject = [&](const std::string& reason) {
    LogWarning(absl::StrCat("fence rejected: ", reason),
               {{"term", TermText(term)}, {"by", session->stream->peer()}});
    proto::FenceRejected* rejected = reply.mutable_fence_rejected();
    rejected->set_term(term);
    rejected->set_cut_step(place.cut_step);
    rejected->set_reason(reason);
    session->Send(reply);
  };
  if (const absl::Status plausible = CheckPlausible(place); !plausible.ok())
    return reject(std::string(plausible.message()));
  const auto name = std::pair(term, place.cut_step);
  const bool repeated =
      cut_ && name == std::pair(cut_->term, cut_->step) && place.directory == cut_->place.directory;
  if (cut_ && !repeated && name <= std::pair(cut_->term, cut_->step)) {
    reply.mutable_fence_rejected()->set_superseded(true);
    return reject(absl::StrCat("ps ", ps_index_, " has accepted the cut at step ", cut_->step,
                               " under the term ", TermText(cut_->term), " already; fence step ",
                               place.cut_step, " under a higher term"));
  }
  if (!repeated) {
    if (const std::optional<uint64_t> applied = store_->cut().Start(place.cut_step)) {
      reply.mutable_fence_rejected()->set_highest_step(*applied);
      return reject(absl::StrCat("ps ", ps_index_, " has applied step ", *applied,
                                 ", so it cannot cut at step ", place.cut_step,
                                 "; fence a higher step"));
    }
  }
  reply.mutable_fence_accepted()->set_term(term);
  reply.mutable_fence_accepted()->set_cut_step(place.cut_step);
  session->Send(reply);
  if (repeated) {
    cut_->session = session;
    if (cut_->ready) SendReady();
    if (cut_->written || cut_->not_seen) SendWritten();
    return;
  }
  SendReplaced(session);
  directory_check_.reset();
  LogInfo("cut begins", {{"step", absl::StrCat(place.cut_step)}});
  cut_.emplace();
  cut_->term = term;
  cut_->step = place.cut_step;
  cut_->place = place;
  cut_->hold = fence.hold();
  cut_->session = session;
  Advance();
}

// Lets the coordinator begin the cut again at once, without waiting for its deadline.
void Cuts::SendReplaced(const SessionPtr& by) const {
  if (!cut_) return;
  const SessionPtr former = cut_->session.lock();
  if (former == nullptr || former == by) return;
  proto::ControlReply reply;
  proto::FenceRejected* rejected = reply.mutable_fence_rejected();
  rejected->set_term(cut_->term);
  rejected->set_cut_step(cut_->step);
  rejected->set_superseded(true);
  rejected->set_reason(absl::StrCat("ps ", ps_index_, " has accepted another cut from ",
                                    by->stream->peer(), ", which ends this one"));
  former->Send(reply);
}

void Cuts::Advance() {
  if (!cut_ || cut_->ready || !store_->cut().Ready()) return;
  cut_->ready = true;
  SendReady();
  if (cut_->place.directory.empty()) {
    cut_->hold ? DropSlots() : store_->cut().End();
    return;
  }
  CheckDirectory();
}

void Cuts::CheckDirectory() {
  directory_check_.emplace(loop_);
  directory_check_->Offload(
      Lane::kFiles,
      [files = files_, place = cut_->place] { return SeesCutDirectory(place, files); },
      [this](const absl::StatusOr<bool>& seen) { OnDirectoryChecked(seen); });
}

void Cuts::OnDirectoryChecked(const absl::StatusOr<bool>& seen) {
  if (seen.ok()) return Write(*seen);
  OnWritten(seen.status());
}

void Cuts::Write(bool seen) {
  if (!seen) {
    LogInfo(
        "this machine does not see the directory of the cut: sending its rows to the coordinator",
        {{"directory", cut_->place.directory}});
    cut_->not_seen = true;
    return SendWritten();
  }
  cut_->writer = std::make_unique<CutWriter>(
      loop_, files_, store_, cut_->place.directory,
      [this](int chunk) {
        cut_->dropped = true;
        cut_->hold ? store_->cut().DropSlots(chunk) : store_->cut().DropChunk(chunk);
      },
      [this](absl::StatusOr<std::vector<WrittenPart>> result) { OnWritten(std::move(result)); });
}

void Cuts::OnWritten(absl::StatusOr<std::vector<WrittenPart>> result) {
  if (absl::IsPermissionDenied(result.status()) && !cut_->dropped) {
    // The directory is read-only here, or another user's.
    LogWarning(std::string(result.status().message()));
    cut_->writer.reset();
    return Write(/*seen=*/false);
  }
  const std::string step = absl::StrCat(cut_->step);
  if (result.ok()) {
    LogInfo("cut written", {{"step", step}, {"directory", cut_->place.directory}});
  } else {
    LogError("cut not written",
             {{"step", step}, {"reason", std::string(result.status().message())}});
  }
  cut_->writer.reset();
  cut_->written = std::move(result);
  cut_->hold ? DropSlots() : store_->cut().End();
  SendWritten();
}

// Drops the slots of the cut: an evaluation reads values only.
void Cuts::DropSlots() {
  for (int chunk = 0; chunk < store_->chunk_count(); ++chunk) store_->cut().DropSlots(chunk);
}

void Cuts::OnRelease(uint64_t term, const proto::Release& release) {
  if (!cut_ || cut_->term != term || cut_->step != release.cut_step()) return;
  if (!cut_->hold && !cut_->not_seen) return;
  cut_->hold = false;
  const bool to_be_written = !cut_->place.directory.empty() && !cut_->written && !cut_->not_seen;
  if (!to_be_written) store_->cut().End();
}

void Cuts::OnReadCut(const SessionPtr& session, uint64_t term, const proto::ReadCut& request) {
  auto fill = scope_.Guard([this](proto::CutRows* rows) { FillRows(rows); });
  session->SendFrom(SourceOf([fill = std::move(fill), to = session.get(), term, request]() mutable {
    proto::ControlReply reply;
    proto::CutRows* rows = reply.mutable_cut_rows();
    rows->set_term(term);
    rows->set_cut_step(request.cut_step());
    rows->set_chunk(request.chunk());
    rows->set_part(request.part());
    fill(rows);
    return to->MakeMessage(reply);
  }));
}

void Cuts::FillRows(proto::CutRows* rows) const {
  if (!cut_ || cut_->term != rows->term() || !store_->cut().Ready() ||
      store_->cut().step() != rows->cut_step() ||
      rows->chunk() >= static_cast<uint32_t>(store_->chunk_count()) || rows->part() >= 1 << 10) {
    return;
  }
  const std::span<const float> values =
      store_->cut().Part(static_cast<int>(rows->chunk()), static_cast<int>(rows->part()));
  rows->set_values(values.data(), values.size_bytes());
}

void Cuts::SendReady() const {
  proto::ControlReply reply;
  reply.mutable_cut_ready()->set_term(cut_->term);
  reply.mutable_cut_ready()->set_cut_step(cut_->step);
  if (const SessionPtr session = cut_->session.lock()) session->Send(reply);
}

void Cuts::SendWritten() const {
  proto::ControlReply reply;
  proto::Written* written = reply.mutable_written();
  written->set_term(cut_->term);
  written->set_cut_step(cut_->step);
  if (cut_->not_seen) {
    written->set_not_seen(true);
  } else if (cut_->written->ok()) {
    for (const WrittenPart& part : **cut_->written) {
      proto::WrittenRange* range = written->add_ranges();
      range->set_file(part.file);
      range->set_offset_bytes(part.offset_bytes);
      range->set_size_bytes(part.size_bytes);
      range->set_crc32c(part.crc32c);
    }
  } else {
    written->set_error(std::string(cut_->written->status().message()));
  }
  if (const SessionPtr session = cut_->session.lock()) session->Send(reply);
}

}  // namespace shoal
