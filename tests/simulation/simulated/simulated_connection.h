#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "tests/simulation/simulated/simulated_network.h"
#include "tests/simulation/simulated/simulated_process.h"

namespace shoal {

// How often a client looks for newer certificates (common/rpc/grpc/grpc_network.cc).
inline constexpr Time kCertificatePeriod = std::chrono::seconds(1);

// One stream with both its ends and the messages in flight between them.
class SimulatedConnection : public std::enable_shared_from_this<SimulatedConnection> {
 public:
  enum Side { kClient = 0, kServer = 1 };

  SimulatedConnection(SimulatedNetwork* network, SimulatedProcess* client, std::string address,
                      std::string method, StreamCallbacks callbacks);

  // Returns the client's handle and asks the listener to accept.
  std::unique_ptr<Stream> Start();

  bool open() const { return !ends_[kClient].closed || !ends_[kServer].closed; }
  bool Has(const SimulatedProcess* process) const {
    return ends_[kClient].process == process || ends_[kServer].process == process;
  }
  bool IsClient(const SimulatedProcess* process) const { return ends_[kClient].process == process; }
  bool Connects(const std::string& a, const std::string& b) const;
  // Breaks the stream: each direction loses a tail, and both ends learn of it within `notice`.
  void Break(Time notice);
  void ProcessGone(SimulatedProcess* process, bool in_order, Time notice);
  // Tells the client after `wait`, and again each kCertificatePeriod while the stream is open at
  // its end, that another stream would use newer certificates.
  void TellOutdated(Time wait);
  // Continues after the end of a cut.
  void Continue();

 private:
  class Handle;
  struct Item {
    enum class Kind { kAccept, kMessage, kHalfClose, kEnd, kGone };
    Kind kind;
    Message message;
    uint32_t checksum = 0;  // of the payload when sent
    bool made = false;      // by a source
    absl::Status status;
    Time due{};
  };
  struct End {
    SimulatedProcess* process = nullptr;  // null before it accepts, and after its end
    std::shared_ptr<StreamCallbacks> callbacks;
    Handle* handle = nullptr;
    std::deque<MessageSource> sources;
    bool made = false;         // by a source, and not yet received
    bool half_closed = false;  // ends once the sources have no more messages
    bool ended = false;        // has sent its last message
    bool deaf = false;         // drops arriving messages
    bool closed = false;       // on_closed was or never will be called
  };
  struct Flight {  // from this side to the other
    std::deque<Item> items;
    Time last_due{};
    bool severed = false;  // accepts no new messages
    bool waiting = false;  // an event for the first item is scheduled
  };

  std::unique_ptr<Stream> MakeHandle(Side side);
  void Send(Side side, Message message, bool made = false);
  void SendFrom(Side side, MessageSource source);
  // Lets the sources make the next message once the last one has arrived.
  void MakeNext(Side side);
  void Written(Side side);
  void Finish(Side side, absl::Status status);
  void HandleDropped(Side side);
  // Tells the other end that this one is gone. Loses a part of the messages in flight.
  void Cancel(Side side);
  void Put(Side side, Item item);
  void LoseTail(Side side);
  void NotifyGone(Side side, Time notice);
  void Schedule(Side side);
  void Pump(Side side);
  bool Blocked(Side side, const Item& item) const;
  void Arrive(Side receiver, const Item& item);
  void AcceptAt(SimulatedProcess* server);
  // Whether both ends may talk, by their certificates.
  absl::Status CheckCertificates(const SimulatedProcess& server) const;
  void Close(Side side, const absl::Status& status);
  std::string HostOf(Side side) const;

  SimulatedNetwork* const network_;
  const std::string address_;
  const std::string method_;
  const Certificate* const client_certificate_;  // of its process; null: the stream is plain
  std::string server_host_;
  End ends_[2];
  Flight flights_[2];
  bool accepted_ = false;
};

}  // namespace shoal
