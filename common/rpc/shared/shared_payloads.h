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

// The key in a call's metadata for the client's offer and for the server's answer.
inline constexpr char kSharedPayloadsKey[] = "shoal-shared-payloads";

// Max copied bytes in flight per direction of a stream.
inline constexpr size_t kSharedHalfBytes = size_t{16} << 20;

// Memory that both ends of a stream share if they are processes of one user on one machine. The
// sender copies a payload into it. The message then has the payload's place
// (proto/shared_payload.proto) instead of its bytes, which pass no socket. A payload that does not
// fit travels in its message, as without shared memory. So nobody ever waits for room.
//
// The client makes the memory and offers it. Each direction has one half. The receiver clears a
// flag next to a payload when it no longer needs the payload.
//
// A client can also lend shared memory of its own. A payload in lent memory is not copied: the
// client places only its flag, and the receiver reads it in place. The client keeps the payload's
// slices until the receiver has read them. At the stream's end the client revokes lent payloads
// that the server has not yet found, and the server does not read them. The server may finish a
// read that has begun.
//
// Not thread-safe, except for the owners of received payloads.
class SharedPayloads {
 public:
  // Makes the client's end. Returns null if the kernel gives no such memory, or `room`, if any, has
  // no space left. `lent` may be null.
  static std::unique_ptr<SharedPayloads> Create(std::shared_ptr<const SharedMemory> lent = nullptr,
                                                const SharedMemory::Room& room = nullptr);
  // Returns the offer with which a server can Open() the memory while this end lives.
  std::string offer() const;
  // Makes the server's end. Returns null if the memory cannot be opened (SharedMemory::Open).
  static std::unique_ptr<SharedPayloads> Open(const std::string& offer,
                                              const SharedMemory::Room& room);
  // Returns the server's answer to the offer that it has opened.
  std::string answer() const;
  ~SharedPayloads() { Revoke(); }

  // Begins to place payloads. The server calls it when it sends its answer, the client when it
  // receives `answer`.
  void StartPlacing(const std::string& answer);
  bool places() const { return places_; }
  // Places the message's payload if it is large enough, StartPlacing() was called and there is
  // room. Else leaves the message unchanged.
  void Place(Message* message);
  // Ends the placing, because the stream has ended, and revokes lent payloads.
  void Revoke();
  // Gives the message the payload that its sender has placed, if any. The place stays in use until
  // the payload's last owner is released, on any thread. INVALID_ARGUMENT: the place is not valid,
  // or the payload was revoked.
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
  // Frees the places of payloads that the receiver no longer needs.
  void Release();
  // Returns a free place of this size in this end's half, with a flag at its beginning; empty if
  // there is none.
  std::optional<Placed> FreePlace(size_t bytes);
  // Whether all slices are in memory that this end lends and the other end has opened.
  bool Lends(const std::vector<Slice>& payload) const;

  const std::shared_ptr<SharedMemory> memory_;
  const std::shared_ptr<const SharedMemory> lent_;  // by the client; null: nothing
  const size_t sends_;                              // this end's half, 0 or 1
  bool places_ = false;
  bool lends_ = false;
  size_t reserved_bytes_ = 0;   // reserved bytes of this end's half
  std::vector<Placed> placed_;  // by place; with their flags
};

}  // namespace shoal
