#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/rpc/message.h"
#include "common/rpc/shared/shared_memory.h"

namespace shoal {

// Of the metadata of a call: the client's offer, and the server's word that it has taken it.
inline constexpr char kSharedPayloadsKey[] = "shoal-shared-payloads";

// What a stream may have on the way so in one direction, of what is copied.
inline constexpr size_t kSharedHalfBytes = size_t{16} << 20;

// Memory that both ends of a stream have, where they are processes of one user on one machine: the
// sender copies a payload into it, and the message says where it lies (proto/shared_payload.proto)
// in the place of its bytes, which then go through no socket. What does not fit goes with its
// message, as all do where there is no such memory, so that nobody ever waits for room.
//
// The client makes it and offers it. A half is for each direction; the receiver clears a flag
// beside a payload when it has done with it.
//
// What a client sends may lie in shared memory of its own, which it lends: of such a payload the
// flag alone is placed, and the receiver reads it where it is. Its slices are kept until that has
// been done, or until the stream ends: then what the server has not yet found is taken back, so
// that it will not read it. What it is reading at that moment it may go on reading.
//
// Used by one thread, but for the owners of received payloads.
class SharedPayloads {
 public:
  // The client's end; null where the kernel gives no such memory, or `room`, if any, has no more.
  // `lent` may be null.
  static std::unique_ptr<SharedPayloads> Create(std::shared_ptr<const SharedMemory> lent = nullptr,
                                                const SharedMemory::Room& room = nullptr);
  // By which a server may Open it, as long as this end lives.
  std::string offer() const;
  // The server's end; null when it is not to be had (SharedMemory::Open).
  static std::unique_ptr<SharedPayloads> Open(const std::string& offer,
                                              const SharedMemory::Room& room);
  // What the server says of the offer that it has opened.
  std::string answer() const;
  ~SharedPayloads() { TakeBack(); }

  // The server's end: the client will know. The client's: the server has said this.
  void BeginToPlace(const std::string& answer);
  bool places() const { return places_; }
  // Places a payload that is worth it, if that has begun and there is room.
  void Place(Message* message);
  // The stream has ended: nothing is placed any more, and what is lent is taken back.
  void TakeBack();
  // The message gets the payload that its sender has placed, which counts as there until its last
  // owner is released, on any thread. INVALID_ARGUMENT: it cannot be there.
  absl::Status Find(Message* message);

 private:
  struct Flag;
  struct Placed {
    size_t begin;
    size_t end;
    std::vector<Slice> lent;
  };

  SharedPayloads(std::shared_ptr<SharedMemory> memory, std::shared_ptr<const SharedMemory> lent,
                 bool client);
  char* half(size_t which) const { return memory_->data() + which * kSharedHalfBytes; }
  Flag* flag(size_t half, size_t begin) const;
  // Forgets what the receiver has done with.
  void Release();
  // Of this end's half: where so much is free, with a flag at its beginning; none: nowhere.
  std::optional<Placed> Room(size_t bytes);
  // The slices lie in what this end lends, and the other end has it.
  bool Lends(const std::vector<Slice>& payload) const;

  const std::shared_ptr<SharedMemory> memory_;
  const std::shared_ptr<const SharedMemory> lent_;  // By the client; null: nothing.
  const size_t sends_;                              // The half, 0 or 1.
  bool places_ = false;
  bool lends_ = false;
  size_t there_ = 0;            // Of this end's half, what the kernel has given.
  std::vector<Placed> placed_;  // In the order in which they lie, with their flags.
};

}  // namespace shoal
