#include "tests/simulation/simulated/simulated_network.h"

#include <algorithm>
#include <chrono>

#include "tests/simulation/simulated/simulated_connection.h"

namespace shoal {
namespace {

// Both ends of a stream whose certificate is not valid any more know it within this time.
constexpr Time kRevokedWithin = std::chrono::milliseconds(5);

}  // namespace

SimulatedProcess* SimulatedNetwork::listener(const std::string& address) const {
  auto found = listeners_.find(address);
  return found != listeners_.end() && found->second->alive() ? found->second : nullptr;
}

std::unique_ptr<Stream> SimulatedNetwork::Open(SimulatedProcess* client, const std::string& address,
                                               const std::string& method,
                                               StreamCallbacks callbacks) {
  auto connection =
      std::make_shared<SimulatedConnection>(this, client, address, method, std::move(callbacks));
  connections_.push_back(connection);
  return connection->Start();
}

std::vector<std::shared_ptr<SimulatedConnection>> SimulatedNetwork::Connections() {
  std::vector<std::shared_ptr<SimulatedConnection>> open;
  std::vector<std::weak_ptr<SimulatedConnection>> still;
  for (const auto& each : connections_) {
    std::shared_ptr<SimulatedConnection> connection = each.lock();
    if (connection == nullptr || !connection->open()) continue;
    open.push_back(connection);
    still.push_back(each);
  }
  connections_ = std::move(still);
  return open;
}

void SimulatedNetwork::ProcessGone(SimulatedProcess* process, bool in_order, Time notice) {
  for (const auto& each : Connections()) each->ProcessGone(process, in_order, notice);
}

void SimulatedNetwork::BreakAll(SimulatedProcess* process, Time notice) {
  for (const auto& each : Connections()) {
    if (each->Has(process)) each->Break(notice);
  }
}

void SimulatedNetwork::BreakBetween(const std::string& a, const std::string& b, Time notice) {
  for (const auto& each : Connections()) {
    if (each->Connects(a, b)) each->Break(notice);
  }
}

void SimulatedNetwork::ReplaceCertificates(SimulatedProcess* process, Time old_until) {
  world_->Trace(process->name(), "has new certificates");
  for (const auto& each : Connections()) {
    if (!each->Has(process)) continue;
    each->TellOutdated(each->IsClient(process)
                           ? Time{}
                           : world_->random().Between(Time(1000), kCertificatePeriod));
    if (old_until > Time{}) {
      world_->After(old_until, [each] {
        if (each->open()) each->Break(kRevokedWithin);
      });
    }
  }
}

bool SimulatedNetwork::IsCut(const std::string& from, const std::string& to) const {
  auto cut = cuts_.find({from, to});
  return cut != cuts_.end() && cut->second > 0;
}

void SimulatedNetwork::Mend(const std::string& from, const std::string& to) {
  --cuts_[{from, to}];
  for (const auto& each : Connections()) each->Continue();
}

Time SimulatedNetwork::DrawReadPause(const std::string& host) {
  const auto slow = read_pauses_.find(host);
  return slow == read_pauses_.end() ? Time{} : world_->random().Between(Time{}, slow->second);
}

Time SimulatedNetwork::DrawLatency(const std::string& a, const std::string& b) {
  Time most = base_latency_;
  for (const std::string& host : {a, b}) {
    auto slow = latencies_.find(host);
    if (slow != latencies_.end()) most = std::max(most, slow->second);
  }
  // Most messages are fast, some are not.
  if (!world_->random().OneIn(8)) most /= 4;
  return world_->random().Between(most / 8, most);
}

}  // namespace shoal
