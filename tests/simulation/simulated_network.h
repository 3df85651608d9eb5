#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/network.h"
#include "tests/simulation/simulated_process.h"
#include "tests/simulation/world.h"

namespace shoal {

class SimulatedConnection;

// All links and streams. A stream delivers in order and loses nothing until it breaks; then a tail
// of what is on the way is lost, in each direction another one, and both ends hear of it, each at a
// time of its own. That is what gRPC over TCP allows. What a cut holds up arrives when the cut is
// mended, unless keepalive has broken the stream before.
class SimulatedNetwork {
 public:
  // Sees every message when it is sent and when it is about to be received.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void OnSent(SimulatedProcess& sender, const std::string& method, bool by_client,
                        const Message& message) = 0;
    virtual void OnReceived(SimulatedProcess& receiver, const std::string& sender,
                            const std::string& method, bool by_client, const Message& message) = 0;
    // A server has ended a stream with this.
    virtual void OnFinished(SimulatedProcess& server, const std::string& method,
                            const absl::Status& status) = 0;
  };
  SimulatedNetwork(World* world, Observer* observer) : world_(world), observer_(observer) {}

  // New streams to `address` lead to this process from now on.
  void SetListener(const std::string& address, SimulatedProcess* process) {
    listeners_[address] = process;
  }
  SimulatedProcess* listener(const std::string& address) const;
  std::unique_ptr<Stream> Open(SimulatedProcess* client, const std::string& address,
                               const std::string& method, StreamCallbacks callbacks);

  // Its streams break; peers hear of it within `notice`. With `in_order` nothing that it has sent
  // is lost.
  void ProcessGone(SimulatedProcess* process, bool in_order, Time notice);
  // Breaks the streams that a process has, or those between two hosts.
  void BreakAll(SimulatedProcess* process, Time notice);
  void BreakBetween(const std::string& a, const std::string& b, Time notice);
  // Nothing gets from one host to the other until Mend.
  void Cut(const std::string& from, const std::string& to) { ++cuts_[{from, to}]; }
  void Mend(const std::string& from, const std::string& to);
  bool IsCut(const std::string& from, const std::string& to) const;
  // The longest time that a message is on the way, to and from this host.
  void SetLatency(const std::string& host, Time latency) { latencies_[host] = latency; }
  void ResetLatency(const std::string& host) { latencies_.erase(host); }
  // The longest time that a host takes over each message that it receives on a stream, one after
  // another.
  void SetReadPause(const std::string& host, Time pause) { read_pauses_[host] = pause; }
  void ResetReadPause(const std::string& host) { read_pauses_.erase(host); }
  void set_base_latency(Time latency) { base_latency_ = latency; }

  World& world() const { return *world_; }
  Observer& observer() const { return *observer_; }
  Time DrawLatency(const std::string& a, const std::string& b);
  Time DrawReadPause(const std::string& host);

 private:
  std::vector<std::shared_ptr<SimulatedConnection>> Connections();

  World* const world_;
  Observer* const observer_;
  std::map<std::string, SimulatedProcess*> listeners_;
  std::vector<std::weak_ptr<SimulatedConnection>> connections_;
  std::map<std::pair<std::string, std::string>, int> cuts_;
  std::map<std::string, Time> latencies_;
  std::map<std::string, Time> read_pauses_;
  Time base_latency_ = std::chrono::milliseconds(1);
};

}  // namespace shoal
