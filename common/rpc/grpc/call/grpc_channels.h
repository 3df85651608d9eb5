#pragma once

#include <grpcpp/channel.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/rpc/grpc/call/keepalive.h"
#include "common/rpc/network.h"
#include "common/rpc/tls/tls_session.h"

namespace shoal {

// The channels of one network: one for each address, kept for later streams. Not thread-safe.
class GrpcChannels {
 public:
  struct Options {
    int max_message_bytes = 0;
    Keepalive keepalive;
    std::shared_ptr<TlsSession> tls;  // null: plain
  };
  explicit GrpcChannels(Options options) : options_(std::move(options)) {}

  // A way to the server at an address.
  struct Channel {
    std::shared_ptr<grpc::Channel> channel;
    std::shared_ptr<TlsSession::Server> server;  // null: plain
  };
  // Returns the channel to a server, for streams of `method`. Does not connect yet. Requires that
  // servers of one role serve all methods of an address.
  Channel Get(const ServerAddress& server, const std::string& method);
  // Drops a channel whose stream could not reach the address. The next stream then tries at once,
  // including the name lookup, and does not wait for gRPC's own backoff. No effect if the address
  // has another channel by now.
  void Forget(const std::string& address, const grpc::Channel* channel);
  // Drops all channels, because their credentials are old. Open streams keep theirs.
  void ForgetAll() { channels_.clear(); }
  // Null: plain.
  const TlsSession* tls() const { return options_.tls.get(); }

 private:
  std::shared_ptr<grpc::ChannelCredentials> Credentials(std::optional<int> ps,
                                                        const std::string& method,
                                                        Channel* channel) const;

  const Options options_;
  std::map<std::string, Channel> channels_;
};

}  // namespace shoal
