#pragma once

#include <grpcpp/channel.h>

#include <map>
#include <memory>
#include <string>

#include "common/rpc/grpc/call/keepalive.h"

namespace shoal {

// The channels of one network: one for each address, kept for later streams. Not thread-safe.
class GrpcChannels {
 public:
  GrpcChannels(int max_message_bytes, const Keepalive& keepalive)
      : max_message_bytes_(max_message_bytes), keepalive_(keepalive) {}

  // Returns the channel of an address. Does not connect yet.
  std::shared_ptr<grpc::Channel> Get(const std::string& address);
  // Drops a channel whose stream could not reach the address. The next stream then tries at once,
  // including the name lookup, and does not wait for gRPC's own backoff. No effect if the address
  // has another channel by now.
  void Forget(const std::string& address, const grpc::Channel* channel);

 private:
  const int max_message_bytes_;
  const Keepalive keepalive_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

}  // namespace shoal
