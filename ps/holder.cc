#include "ps/holder.h"

#include "common/base/text/printable.h"
#include "common/run/run_paths.h"

namespace shoal {
namespace {

// Drops longer texts: no coordinator of Shoal sends them.
constexpr size_t kMaxRunIdBytes = 64;
constexpr size_t kMaxPathBytes = 4096;

bool SameRun(const proto::Claimant& a, const proto::Claimant& b) {
  return !a.run_id().empty() && a.run_id() == b.run_id();
}

}  // namespace

bool Holder::Refuses(const proto::Claim& claim, Time now) const {
  if (!leads_ || who_.run_id().empty() || now - heard_ >= kHolderExpiry) return false;
  return !claim.take_over() && !SameRun(claim.claimant(), who_);
}

void Holder::Follow(const proto::Claim& claim, Time now) {
  // A successor of the same run keeps the ps while it still claims.
  leads_ = claim.leads() || (leads_ && SameRun(claim.claimant(), who_));
  who_ = claim.claimant();
  if (who_.run_id().size() > kMaxRunIdBytes) who_.clear_run_id();
  if (who_.run_directory().size() > kMaxPathBytes) who_.clear_run_directory();
  if (who_.address().size() > kMaxNameBytes) who_.clear_address();
  if (who_.host().size() > kMaxNameBytes) who_.clear_host();
  heard_ = now;
}

void Holder::FollowOn(const proto::Claim& claim, Time now) {
  if (who_.run_id().empty() || SameRun(claim.claimant(), who_)) Follow(claim, now);
}

proto::Claimant Holder::who() const {
  proto::Claimant shown = who_;
  shown.clear_run_id();
  return shown;
}

std::string Holder::checkpoints() const {
  return who_.run_directory().empty() ? "" : RunPaths{who_.run_directory()}.checkpoints();
}

}  // namespace shoal
