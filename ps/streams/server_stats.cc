#include "ps/streams/server_stats.h"

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

constexpr size_t kMaxPeers = 4096;

}  // namespace

ServerStats::Traffic* ServerStats::TrafficOf(uint32_t worker, const std::string& peer) {
  Peer key = {absl::StrCat(worker), peer.starts_with("unix:") ? "unix" : "tcp"};
  if (traffic_.size() >= kMaxPeers && !traffic_.contains(key)) key.worker = "other";
  return &traffic_[key];
}

void ServerStats::CountPush(const PushResult& result, Time duration) {
  if (result.repeated) {
    ++repeated_;
    return;
  }
  if (result.skipped) {
    ++skipped_;
    return;
  }
  ++updates_;
  staleness_.Observe(static_cast<double>(result.staleness));
  apply_seconds_.Observe(ToSeconds(duration));
}

void ServerStats::Collect(MetricSamples* out) const {
  out->Add("shoal_ps_updates_total", static_cast<double>(updates_));
  out->Add("shoal_ps_repeated_updates_total", static_cast<double>(repeated_));
  out->Add("shoal_ps_skipped_updates_total", static_cast<double>(skipped_));
  out->Add("shoal_ps_refused_requests_total", static_cast<double>(rejected_));
  out->Add("shoal_ps_loads_total", static_cast<double>(loads_));
  out->Add(staleness_);
  out->Add(apply_seconds_);
  for (const auto& [peer, traffic] : traffic_) {
    out->Add("shoal_ps_payload_bytes_total", static_cast<double>(traffic.received_bytes),
             {peer.worker, "received", peer.transport});
    out->Add("shoal_ps_payload_bytes_total", static_cast<double>(traffic.sent_bytes),
             {peer.worker, "sent", peer.transport});
  }
}

}  // namespace shoal
