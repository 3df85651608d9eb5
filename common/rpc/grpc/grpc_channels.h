#pragma once

#include <grpcpp/channel.h>

#include <map>
#include <memory>
#include <string>

#include "common/rpc/grpc/grpc_network.h"

namespace shoal {

// The channels of one network: one for each address, kept for the next stream. Not thread-safe.
class GrpcChannels {
 public:
  GrpcChannels(int max_message_bytes, const Keepalive& keepalive)
      : max_message_bytes_(max_message_bytes), keepalive_(keepalive) {}

  // Does not connect yet.
  std::shared_ptr<grpc::Channel> Get(const std::string& address);
  // A stream found nobody at the address, so that the next one tries afresh, name lookup included,
  // instead of waiting until gRPC's own pauses are over. No effect when there is another channel by
  // now.
  void Forget(const std::string& address, const grpc::Channel* channel);

 private:
  const int max_message_bytes_;
  const Keepalive keepalive_;
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
};

}  // namespace shoal
