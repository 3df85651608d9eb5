#include "tests/simulation/simulated/simulated_connection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/security/permissions.h"

namespace shoal {
namespace {

// How long one attempt to connect may take (common/rpc/grpc/call/grpc_channels.cc).
constexpr Time kConnectTimeout = std::chrono::seconds(5);
constexpr Time kRefusedAfter = std::chrono::milliseconds(1);

SimulatedConnection::Side Other(SimulatedConnection::Side side) {
  return side == SimulatedConnection::kClient ? SimulatedConnection::kServer
                                              : SimulatedConnection::kClient;
}

uint32_t ChecksumOf(const Message& message) {
  uint32_t crc = 0;
  for (const Slice& slice : message.payload) crc = Crc32c(crc, slice.data, slice.size);
  return crc;
}

// The receiver reads what is there when it reads, also when the sender is gone by then.
bool IsOwned(const Message& message) {
  return std::all_of(message.payload.begin(), message.payload.end(),
                     [](const Slice& slice) { return slice.owner != nullptr; });
}

// What has reached the receiver's machine is beyond the sender's reach.
void CopyPayload(Message* message) {
  for (Slice& slice : message->payload) {
    auto copy = std::make_shared<const std::string>(slice.data, slice.size);
    slice = {copy->data(), copy->size(), std::move(copy)};
  }
}

}  // namespace

class SimulatedConnection::Handle : public Stream {
 public:
  Handle(std::shared_ptr<SimulatedConnection> connection, Side side)
      : connection_(std::move(connection)), side_(side) {}
  ~Handle() override { connection_->HandleDropped(side_); }
  void Send(Message message) override { connection_->Send(side_, std::move(message)); }
  void SendFrom(MessageSource source) override { connection_->SendFrom(side_, std::move(source)); }
  void Finish(absl::Status status) override { connection_->Finish(side_, std::move(status)); }
  std::string peer() const override {
    return side_ == kClient ? connection_->address_ : connection_->HostOf(kClient);
  }
  const Certificate* client() const override {
    return side_ == kServer ? connection_->client_certificate_ : nullptr;
  }

 private:
  const std::shared_ptr<SimulatedConnection> connection_;
  const Side side_;
};

SimulatedConnection::SimulatedConnection(SimulatedNetwork* network, SimulatedProcess* client,
                                         std::string address, std::string method,
                                         StreamCallbacks callbacks)
    : network_(network),
      address_(std::move(address)),
      method_(std::move(method)),
      client_certificate_(client->certificate()) {
  server_host_ = address_;
  ends_[kClient].process = client;
  ends_[kClient].callbacks = std::make_shared<StreamCallbacks>(std::move(callbacks));
}

std::unique_ptr<Stream> SimulatedConnection::Start() {
  Put(kClient, {.kind = Item::Kind::kAccept});
  network_->world().After(kConnectTimeout, [self = shared_from_this()] {
    if (!self->accepted_ && !self->ends_[kClient].closed) self->Break(kRefusedAfter);
  });
  return MakeHandle(kClient);
}

std::unique_ptr<Stream> SimulatedConnection::MakeHandle(Side side) {
  auto handle = std::make_unique<Handle>(shared_from_this(), side);
  ends_[side].handle = handle.get();
  return handle;
}

std::string SimulatedConnection::HostOf(Side side) const {
  if (side == kServer) return server_host_;
  return ends_[kClient].process == nullptr ? "gone" : ends_[kClient].process->host();
}

bool SimulatedConnection::Connects(const std::string& a, const std::string& b) const {
  const std::string client = HostOf(kClient), server = HostOf(kServer);
  return (client == a && server == b) || (client == b && server == a);
}

void SimulatedConnection::SendFrom(Side side, MessageSource source) {
  End& end = ends_[side];
  if (end.ended || end.closed) return;
  end.sources.push_back(std::move(source));
  MakeNext(side);
}

void SimulatedConnection::MakeNext(Side side) {
  End& end = ends_[side];
  if (flights_[side].severed) {
    const auto dropped = std::exchange(end.sources, {});
    return;
  }
  while (!end.made && !end.sources.empty()) {
    if (std::optional<Message> message = end.sources.front()()) {
      end.made = true;
      Send(side, *std::move(message), /*made=*/true);
    } else {
      end.sources.pop_front();
    }
  }
  if (!end.made && end.half_closed && !end.ended) Finish(side, absl::OkStatus());
}

// The receiver has taken what a source of this side has made, and the sender hears of it.
void SimulatedConnection::Written(Side side) {
  network_->world().After(network_->DrawLatency(HostOf(kClient), HostOf(kServer)),
                          [self = shared_from_this(), side] {
                            SimulatedProcess* const process = self->ends_[side].process;
                            if (process == nullptr) return;
                            process->Enqueue([self, side] {
                              self->ends_[side].made = false;
                              self->MakeNext(side);
                            });
                          });
}

void SimulatedConnection::Send(Side side, Message message, bool made) {
  End& end = ends_[side];
  if (end.ended || end.closed) return;
  network_->observer().OnSent(*end.process, method_, side == kClient, message);
  if (flights_[side].severed) return;
  if (!message.payload.empty() && !made) {
    // However small the queue cap is, no correct peer meets it.
    network_->world().Fail(absl::StrCat(
        end.process->name(), " has made a message with values before it could be written"));
  }
  Item item{.kind = Item::Kind::kMessage, .message = std::move(message), .made = made};
  if (!IsOwned(item.message)) {
    network_->world().Fail(end.process->name() + " has sent values that nobody keeps");
  }
  item.checksum = ChecksumOf(item.message);
  Put(side, std::move(item));
}

void SimulatedConnection::Finish(Side side, absl::Status status) {
  End& end = ends_[side];
  if (end.closed) return;
  if (side == kClient && !status.ok()) {
    if (!end.deaf) Cancel(kClient);
    end.ended = end.deaf = true;
    return end.process->Enqueue(
        [self = shared_from_this(), status] { self->Close(kClient, status); });
  }
  if (end.ended) return;
  end.ended = true;
  const auto dropped = std::exchange(end.sources, {});
  if (side == kClient) return Put(kClient, {.kind = Item::Kind::kHalfClose});
  network_->observer().OnFinished(*end.process, method_, status);
  end.deaf = true;
  Put(kServer, {.kind = Item::Kind::kEnd, .status = status});
  network_->world().After(network_->DrawLatency(HostOf(kClient), HostOf(kServer)),
                          [self = shared_from_this(), status] {
                            SimulatedProcess* const process = self->ends_[kServer].process;
                            if (process != nullptr)
                              process->Enqueue([self, status] { self->Close(kServer, status); });
                          });
}

void SimulatedConnection::HandleDropped(Side side) {
  End& end = ends_[side];
  end.handle = nullptr;
  end.deaf = true;
  end.callbacks.reset();
  const auto dropped = std::exchange(end.sources, {});
  if (end.closed || end.ended) return;
  end.ended = end.closed = true;
  Cancel(side);
}

void SimulatedConnection::Cancel(Side side) {
  LoseTail(side);
  NotifyGone(side, kRefusedAfter);
  flights_[Other(side)].items.clear();
  flights_[Other(side)].severed = true;
}

void SimulatedConnection::LoseTail(Side side) {
  Flight& flight = flights_[side];
  flight.severed = true;
  const size_t kept = network_->world().random().Below(flight.items.size() + 1);
  while (flight.items.size() > kept) flight.items.pop_back();
  // What a cut holds up does not come after all.
  if (!flight.items.empty() && Blocked(side, flight.items.front())) flight.items.clear();
}

void SimulatedConnection::NotifyGone(Side side, Time notice) {
  World& world = network_->world();
  flights_[side].severed = true;
  Item gone{.kind = Item::Kind::kGone,
            .status = absl::UnavailableError(
                absl::StrCat(side == kServer ? address_ : HostOf(kClient), ": the stream broke"))};
  gone.due =
      std::max(flights_[side].last_due, world.Now() + world.random().Between(Time(1000), notice));
  flights_[side].last_due = gone.due;
  flights_[side].items.push_back(std::move(gone));
  Schedule(side);
}

void SimulatedConnection::Break(Time notice) {
  for (const Side side : {kClient, kServer}) {
    if (flights_[side].severed) continue;
    LoseTail(side);
    NotifyGone(side, notice);
  }
}

void SimulatedConnection::TellOutdated(Time wait) {
  network_->world().After(wait, [self = shared_from_this()] {
    const End& client = self->ends_[kClient];
    if (client.closed) return;
    client.process->Enqueue([self] {
      const std::shared_ptr<StreamCallbacks> callbacks = self->ends_[kClient].callbacks;
      if (callbacks != nullptr && callbacks->on_outdated) callbacks->on_outdated();
    });
    self->TellOutdated(kCertificatePeriod);
  });
}

void SimulatedConnection::ProcessGone(SimulatedProcess* process, bool in_order, Time notice) {
  for (const Side side : {kClient, kServer}) {
    End& end = ends_[side];
    if (end.process != process) continue;
    if (!flights_[side].severed) {
      if (!in_order) LoseTail(side);
      NotifyGone(side, notice);
    }
    flights_[Other(side)].items.clear();
    flights_[Other(side)].severed = true;
    end.ended = end.deaf = end.closed = true;
    end.callbacks.reset();
    const auto dropped = std::exchange(end.sources, {});
  }
}

void SimulatedConnection::Put(Side side, Item item) {
  Flight& flight = flights_[side];
  if (flight.severed) return;
  item.due =
      std::max(flight.last_due,
               network_->world().Now() + network_->DrawLatency(HostOf(kClient), HostOf(kServer))) +
      network_->DrawReadPause(HostOf(Other(side)));
  flight.last_due = item.due;
  flight.items.push_back(std::move(item));
  Schedule(side);
}

void SimulatedConnection::Schedule(Side side) {
  Flight& flight = flights_[side];
  if (flight.waiting || flight.items.empty()) return;
  if (Blocked(side, flight.items.front())) return;  // until Continue
  flight.waiting = true;
  World& world = network_->world();
  const Time wait = std::max(Time::zero(), flight.items.front().due - world.Now());
  world.After(wait, [self = shared_from_this(), side] { self->Pump(side); });
}

bool SimulatedConnection::Blocked(Side side, const Item& item) const {
  if (item.kind == Item::Kind::kGone) return false;
  const std::string from = HostOf(side), to = HostOf(Other(side));
  return network_->IsCut(from, to) ||
         (item.kind == Item::Kind::kAccept && network_->IsCut(to, from));
}

void SimulatedConnection::Continue() {
  Schedule(kClient);
  Schedule(kServer);
}

void SimulatedConnection::Pump(Side side) {
  Flight& flight = flights_[side];
  flight.waiting = false;
  if (flight.items.empty()) return;
  const bool early = flight.items.front().due > network_->world().Now();
  if (!early && !Blocked(side, flight.items.front())) {
    auto item = std::make_shared<Item>(std::move(flight.items.front()));
    if (item->kind == Item::Kind::kMessage) CopyPayload(&item->message);
    flight.items.pop_front();
    if (item->kind == Item::Kind::kAccept) {
      SimulatedProcess* const server = network_->listener(address_);
      if (server == nullptr) {
        flight.items.clear();
        flight.severed = true;
        NotifyGone(kServer, kRefusedAfter);
        return;
      }
      ends_[kServer].process = server;
      server_host_ = server->host();
      server->Enqueue([self = shared_from_this(), server] { self->AcceptAt(server); });
    } else if (SimulatedProcess* const process = ends_[Other(side)].process; process != nullptr) {
      process->Enqueue([self = shared_from_this(), side, item] {
        self->Arrive(Other(side), *item);
        if (item->made) self->Written(side);
      });
    }
  }
  Schedule(side);
}

absl::Status SimulatedConnection::CheckCertificates(const SimulatedProcess& server) const {
  if (client_certificate_ == nullptr) return absl::OkStatus();
  const Identity& client = client_certificate_->identity;
  const Identity& own = server.certificate()->identity;
  SHOAL_RETURN_IF_ERROR(CheckServer(client, own, method_, std::nullopt));
  return CheckPermitted(own, client, method_);
}

void SimulatedConnection::AcceptAt(SimulatedProcess* server) {
  End& end = ends_[kServer];
  if (end.closed) return;
  accepted_ = true;
  if (const absl::Status checked = CheckCertificates(*server); !checked.ok()) {
    network_->world().Fail(absl::StrCat(server->name(), ": ", checked.ToString()));
    return;
  }
  absl::StatusOr<StreamCallbacks> callbacks = server->acceptor()(method_, MakeHandle(kServer));
  if (!callbacks.ok()) {
    network_->world().Fail(
        absl::StrCat(server->name(), " refused a stream: ", callbacks.status().ToString()));
    return;
  }
  if (end.handle != nullptr)
    end.callbacks = std::make_shared<StreamCallbacks>(*std::move(callbacks));
}

void SimulatedConnection::Arrive(Side receiver, const Item& item) {
  End& end = ends_[receiver];
  switch (item.kind) {
    case Item::Kind::kMessage: {
      if (end.deaf || end.handle == nullptr || end.callbacks == nullptr) return;
      // A worker that has dropped a step may go on in the buffer of its gradient; what is still on
      // the way must not be applied then, which the sums show.
      if (receiver == kClient && ChecksumOf(item.message) != item.checksum) {
        network_->world().Fail("a payload was changed while it was being sent to " +
                               end.process->name());
      }
      network_->observer().OnReceived(*end.process, HostOf(Other(receiver)), method_,
                                      receiver == kServer, item.message);
      const std::shared_ptr<StreamCallbacks> callbacks = end.callbacks;
      if (callbacks->on_message) callbacks->on_message(item.message);
      return;
    }
    case Item::Kind::kHalfClose:
      if (end.callbacks != nullptr && end.callbacks->on_half_closed) {
        const std::shared_ptr<StreamCallbacks> callbacks = end.callbacks;
        return callbacks->on_half_closed();
      }
      end.half_closed = true;
      return MakeNext(kServer);
    case Item::Kind::kEnd:
    case Item::Kind::kGone:
      return Close(receiver, item.status);
    case Item::Kind::kAccept:
      return;
  }
}

void SimulatedConnection::Close(Side side, const absl::Status& status) {
  End& end = ends_[side];
  if (end.closed) return;
  end.closed = end.ended = end.deaf = true;
  flights_[side].severed = true;
  const auto dropped = std::exchange(end.sources, {});
  const std::shared_ptr<StreamCallbacks> callbacks = std::exchange(end.callbacks, nullptr);
  if (end.handle != nullptr && callbacks != nullptr && callbacks->on_closed) {
    callbacks->on_closed(status);
  }
}

}  // namespace shoal
