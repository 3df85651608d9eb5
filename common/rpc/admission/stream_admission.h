#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/rpc/admission/client_connections.h"
#include "common/rpc/event_loop.h"

namespace shoal {

// Admits the streams of clients to a server, up to a max of open streams in all and on each
// connection. A stream talks while its client has sent a valid message and the stream has not
// ended. Else it is silent. The oldest silent streams give way to new ones. Loop thread only.
class StreamAdmission {
 public:
  struct Options {
    EventLoop* loop = nullptr;                 // both must outlive this
    ClientConnections* connections = nullptr;  // also hears which connections talk
    std::string address;                       // of the server, for messages
    size_t max_streams = 0;
    size_t max_streams_per_client = 0;  // `connections` counts the streams and has its own max
    // Called when silent streams end for others, at most once a minute. May be null.
    std::function<void(const std::string&)> warn;
  };
  struct NewStream {
    uint64_t number = 0;      // larger than the numbers of older streams
    uint64_t connection = 0;  // number of its connection (ClientConnections); 0: not known
    bool always = false;      // ignores the max of all streams
  };
  explicit StreamAdmission(Options options) : options_(std::move(options)) {}

  // Decides whether to accept a new stream. It is silent, and takes a place even if rejected. Calls
  // `displace` for each older stream that must give way, with the reason; it must end that stream.
  // kResourceExhausted: why the new stream is rejected.
  absl::Status Admit(
      const NewStream& stream,
      absl::FunctionRef<void(uint64_t displaced, const absl::Status& reason)> displace);
  // Reports that an admitted stream begins or stops talking. Requires a change.
  void SetTalks(uint64_t stream, uint64_t connection, bool talks);
  // Frees the place of a silent stream that has ended.
  void Remove(uint64_t stream, uint64_t connection);

 private:
  size_t streams() const { return silent_.size() + talking_; }

  const Options options_;
  std::set<uint64_t> silent_;  // except those that gave way
  size_t talking_ = 0;
  std::optional<Time> warned_at_;
};

}  // namespace shoal
