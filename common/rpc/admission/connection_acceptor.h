#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"
#include "common/rpc/admission/client_connections.h"
#include "common/rpc/admission/listening_socket.h"

namespace shoal {

// Accepts the connections of a server on a thread of its own and hands them over. Where no more can
// be taken, those that come wait in the system's queue, and are accepted as soon as others are
// closed, as silent ones are for them (ClientConnections). Our own, as gRPC 1.51 gives up a port
// for ever once accept fails for want of a descriptor, and takes any number of connections. From
// construction to Stop; thread-safe.
class ConnectionAcceptor {
 public:
  struct Options {
    ClientConnections* connections = nullptr;  // those that are open; outlives this
    // Owns the descriptor, which does not block, from then on. Called on the acceptor's thread.
    std::function<void(int fd)> on_connection;
    // Told, on that thread, when connections are not accepted any more and when they are again,
    // and when silent ones are being ended for others. May be null.
    std::function<void(const std::string&)> warn;
  };
  ConnectionAcceptor(ListeningSocket socket, Options options);
  ~ConnectionAcceptor() { Stop(); }

  // Gives up the port. When this returns, nothing more is handed over.
  void Stop();

  const std::string& address() const { return socket_.address(); }
  // Why no connection is being accepted, and since when, in a line; empty while they are.
  std::string Deaf() const;

 private:
  // What to do when all is accepted that can be.
  struct Next {
    int pause_ms = -1;  // until it is tried again; -1: when a client connects
    // Why no connection is being accepted; empty: they are; none: as before.
    std::optional<std::string> reason = "";
  };
  void Run();
  // Whether one wants to connect within that time (-1: any).
  bool AwaitClient(int timeout_ms);
  void WarnCrowded();
  // Accepts what waits.
  Next AcceptAll();
  void SetDeaf(const std::string& reason);

  const ListeningSocket socket_;
  const Options options_;
  std::atomic<bool> ending_ = false;
  std::optional<std::chrono::steady_clock::time_point> crowded_said_;  // of the thread

  mutable Mutex mutex_;
  std::string deaf_ ABSL_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point deaf_since_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // "accept"; last, so that it starts when all else is there
};

// How many connections a server of this process may have open so that other files, of checkpoints
// for example, can still be opened: `wanted`, or what the limit of open files (RLIMIT_NOFILE)
// leaves.
size_t ConnectionsWithinFileLimit(size_t wanted);

}  // namespace shoal
