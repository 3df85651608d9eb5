#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "tests/simulation/simulated_network.h"
#include "tests/simulation/simulated_process.h"

namespace shoal {

// One stream with both its ends and what is on the way between them.
class SimulatedConnection : public std::enable_shared_from_this<SimulatedConnection> {
 public:
  enum Side { kClient = 0, kServer = 1 };

  SimulatedConnection(SimulatedNetwork* network, SimulatedProcess* client, std::string address,
                      std::string method, StreamCallbacks callbacks);

  // The client's handle; asks whoever listens to accept.
  std::unique_ptr<Stream> Start();

  bool open() const { return !ends_[kClient].closed || !ends_[kServer].closed; }
  bool Has(const SimulatedProcess* process) const {
    return ends_[kClient].process == process || ends_[kServer].process == process;
  }
  bool Connects(const std::string& a, const std::string& b) const;
  // Each direction loses a tail; both ends hear of it within `notice`.
  void Break(Time notice);
  void ProcessGone(SimulatedProcess* process, bool in_order, Time notice);
  // Goes on after a cut was mended.
  void Continue();

 private:
  class Handle;
  struct Item {
    enum class Kind { kAccept, kMessage, kHalfClose, kEnd, kGone };
    Kind kind;
    Message message;
    uint32_t checksum = 0;  // of the payload as it was sent
    bool made = false;      // by a source
    absl::Status status;
    Time due{};
  };
  struct End {
    SimulatedProcess* process = nullptr;  // null before it accepts, and when it is gone
    std::shared_ptr<StreamCallbacks> callbacks;
    Handle* handle = nullptr;
    std::deque<MessageSource> sources;
    bool made = false;         // by a source, and not received yet
    bool half_closed = false;  // ends when the sources are through
    bool ended = false;        // has sent its last message
    bool deaf = false;         // drops what arrives
    bool closed = false;       // on_closed was called, or will never be
  };
  struct Flight {  // from the side of this index to the other
    std::deque<Item> items;
    Time last_due{};
    bool severed = false;  // nothing new gets on the way
    bool waiting = false;  // an event for the first item is there
  };

  std::unique_ptr<Stream> MakeHandle(Side side);
  void Send(Side side, Message message, bool made = false);
  void SendFrom(Side side, MessageSource source);
  // Has the sources make the next message once the one before has arrived.
  void MakeNext(Side side);
  void Written(Side side);
  void Finish(Side side, absl::Status status);
  void HandleDropped(Side side);
  // The other end hears that this one is gone, after a part of what is on the way.
  void Cancel(Side side);
  void Put(Side side, Item item);
  void LoseTail(Side side);
  void SayGone(Side side, Time notice);
  void Schedule(Side side);
  void Pump(Side side);
  bool Blocked(Side side, const Item& item) const;
  void Arrive(Side receiver, const Item& item);
  void AcceptAt(SimulatedProcess* server);
  void Close(Side side, const absl::Status& status);
  std::string HostOf(Side side) const;

  SimulatedNetwork* const network_;
  const std::string address_;
  const std::string method_;
  std::string server_host_;
  End ends_[2];
  Flight flights_[2];
  bool accepted_ = false;
};

}  // namespace shoal
