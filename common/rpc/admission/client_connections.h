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

// A server warns at most this often that silent connections or streams end for new ones.
inline constexpr Time kCrowdedWarningPeriod = std::chrono::minutes(1);

// The connections of clients to a server of this process, up to a max. A connection talks while it
// has a stream on which the client has sent a valid message. Else it is silent. Silent connections
// give way to new ones if there is no more room. Otherwise they could keep all others out.
// Thread-safe.
class ClientConnections {
 public:
  struct Options {
    size_t max_connections = 0;
    // Max open streams of one connection.
    size_t max_streams = 0;
    // A connection that is silent for this long gives way.
    Time patience = std::chrono::seconds(1);
  };
  explicit ClientConnections(Options options) : options_(options) {}

  size_t max_connections() const { return options_.max_connections; }

  // Whether there is room for one more connection.
  enum class Room {
    kFree,
    kSoon,   // some of the longest silent connections are being ended
    kLater,  // silent connections have some time left to send a message
    kNone,   // no connection is silent
  };
  // Returns the room. Ends some silent connections if there is none.
  Room MakeRoom();
  // Adds an accepted connection. The owner of the descriptor may close it at any time.
  void Add(int fd);

  // Returns the number of the last connection of the client at `peer` ("127.0.0.1:4711"). Returns 0
  // if there is none. The calls below ignore 0.
  uint64_t Find(const std::string& peer) const;
  // Returns the connection's descriptor, or -1 if the connection is not known.
  int Descriptor(uint64_t connection) const;
  // Counts a new stream of the connection. Returns false if the connection has more than its max.
  bool OpenStream(uint64_t connection);
  // Call it at the end of each stream, even if OpenStream() returned false.
  void CloseStream(uint64_t connection);
  // Reports that one of the connection's streams begins, or ends, to talk.
  void BeginTalk(uint64_t connection);
  void EndTalk(uint64_t connection);

 private:
  struct Connection {
    SocketMark socket;
    // Empty for a socket in the file system. The server cannot match streams to these connections,
    // so it does not end them.
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
  // Removes closed connections. Returns the silent ones of the others.
  std::vector<Silent> Sweep();
  // Ends the connection, unless it talks by now.
  void End(const Silent& silent);

  const Options options_;
  mutable Mutex mutex_;
  // By number; may include closed ones.
  std::map<uint64_t, Connection> connections_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint64_t> last_of_peer_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns gRPC's name for the client of a connection; empty for a socket in the file system.
std::string PeerOf(int fd);

}  // namespace shoal
