#include "ps/services/holder.h"

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

bool Holder::Rejects(const proto::Claim& claim, Time now) const {
  if (!leads_ || claimant_.run_id().empty() || now - last_command_ >= kHolderExpiry) return false;
  return !claim.take_over() && !SameRun(claim.claimant(), claimant_);
}

bool Holder::IsOfRun(const proto::Claim& claim) const {
  return claimant_.run_id().empty() || SameRun(claim.claimant(), claimant_);
}

void Holder::Follow(const proto::Claim& claim, Time now) {
  // A successor of the same run keeps the ps while it still claims.
  leads_ = claim.leads() || (leads_ && SameRun(claim.claimant(), claimant_));
  claimant_ = claim.claimant();
  if (claimant_.run_id().size() > kMaxRunIdBytes) claimant_.clear_run_id();
  if (claimant_.run_directory().size() > kMaxPathBytes) claimant_.clear_run_directory();
  if (claimant_.address().size() > kMaxNameBytes) claimant_.clear_address();
  if (claimant_.host().size() > kMaxNameBytes) claimant_.clear_host();
  last_command_ = now;
}

proto::Claimant Holder::claimant() const {
  proto::Claimant shown = claimant_;
  shown.clear_run_id();
  return shown;
}

std::string Holder::checkpoints() const {
  return claimant_.run_directory().empty() ? "" : RunPaths{claimant_.run_directory()}.checkpoints();
}

}  // namespace shoal
