#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/rpc/admission/client_connections.h"
#include "common/rpc/admission/listening_socket.h"

namespace shoal {

// Accepts the connections of a server on its own thread and hands them over. If there is no more
// room, new connections wait in the system's queue until others close. Silent connections are ended
// for them (ClientConnections). We do not use gRPC's acceptor: gRPC 1.51 takes any number of
// connections, and closes its port for ever if accept finds no free descriptor. Runs from
// construction to Stop(). Thread-safe.
class ConnectionAcceptor {
 public:
  struct Options {
    ClientConnections* connections = nullptr;  // the open connections; must outlive this
    // Takes ownership of the non-blocking descriptor. Called on the acceptor's thread.
    std::function<void(int fd)> on_connection;
    // Called on the acceptor's thread when it can no longer accept connections, when it can again,
    // and when it ends silent connections for others. May be null.
    std::function<void(const std::string&)> warn;
  };
  ConnectionAcceptor(ListeningSocket socket, Options options);
  ~ConnectionAcceptor() { Stop(); }

  // Closes the port. Hands no connection over after it returns.
  void Stop();

  const std::string& address() const { return socket_.address(); }
  // Returns OK if connections are accepted. kResourceExhausted: why they are not and for how long,
  // in one line.
  absl::Status CheckAccepting() const;

 private:
  // The next try, after all possible connections are accepted.
  struct Next {
    int pause_ms = -1;  // the pause until it; -1: wait until a client connects
    // Why no connections are accepted. Empty text: they are accepted. No value: no change.
    std::optional<std::string> reason = "";
  };
  void Run();
  // Whether a client connects within that time (-1: no limit).
  bool AwaitClient(int timeout_ms);
  void WarnCrowded();
  // Accepts the waiting connections while there is room.
  Next AcceptAll();
  // `reason` is like Next::reason.
  void SetNotAccepting(const std::string& reason);

  const ListeningSocket socket_;
  const Options options_;
  std::atomic<bool> ending_ = false;
  std::optional<std::chrono::steady_clock::time_point> warned_at_;  // of the thread

  mutable Mutex mutex_;
  std::string not_accepting_ ABSL_GUARDED_BY(mutex_);  // the reason; empty if it accepts
  std::chrono::steady_clock::time_point not_accepting_since_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // "accept"; last: it starts after all other members
};

// Returns the max number of open connections of a server of this process: `wanted`, or fewer if the
// limit of open files (RLIMIT_NOFILE) is low. The process can still open other files, such as
// checkpoints.
size_t ConnectionsWithinFileLimit(size_t wanted);

}  // namespace shoal
