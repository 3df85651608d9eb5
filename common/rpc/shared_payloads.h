#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/message.h"

namespace shoal {

// Of the metadata of a call: the client's offer, and the server's word that it has taken it.
inline constexpr char kSharedPayloadsKey[] = "shoal-shared-payloads";

// What a stream may have on the way so in one direction.
inline constexpr size_t kSharedHalfBytes = size_t{16} << 20;

// Memory that both ends of a stream have, where they are processes of one user on one machine: the
// sender copies a payload into it, and the message says where it lies (proto/shared_payload.proto)
// in the place of its bytes, which then go through no socket. What does not fit goes with its
// message, as all do where there is no such memory, so that nobody ever waits for room.
//
// The client makes it, a file without a name or a way to shrink, and offers it; the server opens it
// through /proc and compares a random number in it, so that it can be no other file. A half is for
// each direction; the receiver clears a flag beside a payload when it has done with it. The peer
// can still change what it has placed: who reads it may be told nonsense, as by any message, and
// fetches once what he checks. It is a process of the same user, which could do as much with a
// debugger.
//
// Used by one thread, but for the owners of received payloads.
class SharedPayloads {
 public:
  // The client's end; null where the kernel gives no such memory.
  static std::unique_ptr<SharedPayloads> Create();
  // By which a server may Open it, as long as this end lives.
  std::string offer() const;
  // The server's end; null when it is not to be had: another machine, user or container, or not an
  // offer at all.
  static std::unique_ptr<SharedPayloads> Open(const std::string& offer);

  // The peer has the memory, too.
  void BeginToPlace() { places_ = true; }
  bool places() const { return places_; }
  // Copies a payload that is worth it into the memory, if that has begun and there is room.
  void Place(Message* message);
  // The message gets the payload that its sender has placed, which counts as there until its last
  // owner is released, on any thread. INVALID_ARGUMENT: it cannot be there.
  absl::Status Find(Message* message) const;

 private:
  struct Memory;
  struct Placed {
    size_t begin;
    size_t end;
  };

  SharedPayloads(std::shared_ptr<Memory> memory, bool client);
  // Whether the kernel has given the memory of this end's half up to `end`: who touches what it has
  // not is killed where there is none left.
  bool IsThere(size_t end);

  const std::shared_ptr<Memory> memory_;
  const size_t sends_;  // The half, 0 or 1.
  bool places_ = false;
  size_t there_ = 0;
  std::vector<Placed> placed_;  // In the order in which they lie, with their flags.
};

}  // namespace shoal
