#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/rpc/admission/socket_mark.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// The connections that clients have to a server of this process, of which there is room for some.
// A connection talks while it has a stream that has said something that makes sense. Those that do
// not, the silent ones, give way to others where there is no more room, so that they keep nobody
// out. Thread-safe.
class ClientConnections {
 public:
  struct Options {
    size_t most = 0;  // that may be open at once
    // Streams that one of them may have open at once.
    size_t most_streams = 0;
    // From when on one that is silent gives way.
    Time patience = std::chrono::seconds(1);
  };
  explicit ClientConnections(Options options) : options_(options) {}

  size_t most() const { return options_.most; }

  // Whether one more may be accepted.
  enum class Room {
    kFree,
    kSoon,   // some of those that have been silent for longest are being ended
    kLater,  // those that are silent have some time left to say something
    kNone,   // nobody is silent
  };
  Room MakeRoom();
  // One has been accepted; whoever owns the descriptor may close it at any time.
  void Add(int fd);

  // The number of the connection of the client at `peer` ("127.0.0.1:4711"), the last one where it
  // has come again from there; 0, which the calls below ignore, where none is known.
  uint64_t Find(const std::string& peer) const;
  // Its descriptor; -1 where none is known.
  int Descriptor(uint64_t connection) const;
  // It opens a stream; false when it has as many as it may.
  bool OpenStream(uint64_t connection);
  // For each that it was to open.
  void CloseStream(uint64_t connection);
  // One of its streams begins to talk, or has ended.
  void BeginTalk(uint64_t connection);
  void EndTalk(uint64_t connection);

 private:
  struct Connection {
    SocketMark socket;
    // Empty for a socket in the file system: whose streams those are is not known, nobody is ended.
    std::string peer;
    size_t streams = 0;
    size_t talking = 0;
    Time silent_since{};
  };
  struct Silent {
    uint64_t number;
    SocketMark socket;
    Time since;
  };
  // Forgets those that are closed; those that are silent of the others.
  std::vector<Silent> Sweep();
  // Ends its connection, unless it has begun to talk since it was seen.
  void End(const Silent& silent);

  const Options options_;
  mutable Mutex mutex_;
  // By number; with some that are closed.
  std::map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> last_of_peer_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The client of a connection, as gRPC names it; empty for a socket in the file system.
std::string PeerOf(int fd);

}  // namespace shoal
