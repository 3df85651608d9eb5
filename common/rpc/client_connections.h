#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/socket_mark.h"

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
    kSoon,  // some of those that have been silent for longest are being ended
    kNone,  // nobody is silent
  };
  Room MakeRoom();
  // One has been accepted; whoever owns the descriptor may close it at any time.
  void Add(int fd);

  // The client at `peer` ("127.0.0.1:4711") opens a stream; false when it has as many as it may.
  bool OpenStream(const std::string& peer);
  // For each that it was to open.
  void CloseStream(const std::string& peer);
  // One of its streams begins to talk, or has ended.
  void BeginTalk(const std::string& peer);
  void EndTalk(const std::string& peer);

 private:
  struct Connection {
    SocketMark socket;
    // By a socket in the file system: whose streams those are is not known, nobody is ended.
    bool local = false;
    size_t streams = 0;
    size_t talking = 0;
    Time silent_since{};
  };
  // Null for one that is not known.
  Connection* Find(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  // By peer; with some that are closed.
  std::map<std::string, Connection> connections_ ABSL_GUARDED_BY(mutex_);
};

// The client of a connection, as gRPC names it; empty for a socket in the file system.
std::string PeerOf(int fd);

}  // namespace shoal
