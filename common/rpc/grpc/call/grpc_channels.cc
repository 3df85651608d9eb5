#include "common/rpc/grpc/call/grpc_channels.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

namespace shoal {
namespace {

grpc::ChannelArguments Arguments(int max_message_bytes, const Keepalive& keepalive) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(max_message_bytes);
  // No retries by gRPC: the protocol opens streams again, and must know that they broke.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // No probes: the window follows the messages that are read, which measured faster.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // This is also the max time of one attempt to connect.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, keepalive.silence_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, keepalive.answer_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // No compressed messages: they could grow beyond the max size.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  // Disables filters that no stream of ours uses and that every message would pass.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  return arguments;
}

}  // namespace

GrpcChannels::Channel GrpcChannels::Get(const ServerAddress& server, const std::string& method) {
  Channel& channel = channels_[server.address];
  if (channel.channel == nullptr) {
    const auto credentials = Credentials(server.ps, method, &channel);
    channel.channel = grpc::CreateCustomChannel(
        server.address, credentials, Arguments(options_.max_message_bytes, options_.keepalive));
  }
  return channel;
}

std::shared_ptr<grpc::ChannelCredentials> GrpcChannels::Credentials(std::optional<int> ps,
                                                                    const std::string& method,
                                                                    Channel* channel) const {
  if (options_.tls == nullptr) return grpc::InsecureChannelCredentials();
  auto server = std::make_shared<TlsSession::Server>();
  channel->server = server;
  return options_.tls->ForChannel(method, ps, std::move(server));
}

void GrpcChannels::Forget(const std::string& address, const grpc::Channel* channel) {
  const auto it = channels_.find(address);
  if (it != channels_.end() && it->second.channel.get() == channel) channels_.erase(it);
}

}  // namespace shoal
