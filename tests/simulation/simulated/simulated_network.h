#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/network.h"
#include "tests/simulation/simulated/simulated_process.h"
#include "tests/simulation/world.h"

namespace shoal {

class SimulatedConnection;

// All links and streams. A stream delivers in order and loses nothing until it breaks. Then each
// direction loses a tail of its messages in flight, and each end learns of it at its own time. gRPC
// over TCP permits exactly this. Messages that a cut holds up arrive after the cut, unless
// keepalive has broken the stream before.
class SimulatedNetwork {
 public:
  // Observes every message, when it is sent and just before it is received.
  class Observer {
   public:
    virtual ~Observer() = default;
    virtual void OnSent(SimulatedProcess& sender, const std::string& method, bool by_client,
                        const Message& message) = 0;
    virtual void OnReceived(SimulatedProcess& receiver, const std::string& sender,
                            const std::string& method, bool by_client, const Message& message) = 0;
    // Called when a server has ended a stream with this status.
    virtual void OnFinished(SimulatedProcess& server, const std::string& method,
                            const absl::Status& status) = 0;
  };
  SimulatedNetwork(World* world, Observer* observer) : world_(world), observer_(observer) {}

  // From now on, new streams to `address` lead to this process.
  void SetListener(const std::string& address, SimulatedProcess* process) {
    listeners_[address] = process;
  }
  SimulatedProcess* listener(const std::string& address) const;
  std::unique_ptr<Stream> Open(SimulatedProcess* client, const std::string& address,
                               const std::string& method, StreamCallbacks callbacks);

  // Breaks the streams of an ended process; peers learn of it within `notice`. With `in_order`, all
  // messages that it has sent arrive.
  void ProcessGone(SimulatedProcess* process, bool in_order, Time notice);
  // Break the streams of a process, or those between two hosts.
  void BreakAll(SimulatedProcess* process, Time notice);
  void BreakBetween(const std::string& a, const std::string& b, Time notice);
  // The process has new certificates, so its open streams have old ones. Tells their clients, at
  // once and again each second (StreamCallbacks::on_outdated). A client learns of a server's new
  // certificate within a second. Unless 0, the streams that are still open after `old_until` break:
  // the old certificate is not valid any more.
  void ReplaceCertificates(SimulatedProcess* process, Time old_until);
  // Blocks all messages from one host to the other until Mend.
  void Cut(const std::string& from, const std::string& to) { ++cuts_[{from, to}]; }
  void Mend(const std::string& from, const std::string& to);
  bool IsCut(const std::string& from, const std::string& to) const;
  // Sets the max latency of messages to and from this host.
  void SetLatency(const std::string& host, Time latency) { latencies_[host] = latency; }
  void ResetLatency(const std::string& host) { latencies_.erase(host); }
  // Sets the max time that a host takes to receive a message of a stream. It receives the messages
  // of a stream one after another.
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
