#include "tests/simulation/checks/message_text.h"

#include "common/rpc/methods.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"

namespace shoal {
namespace {

template <typename Proto>
std::string ShortText(const Message& message) {
  Proto proto;
  if (!ParseMessage(message, &proto)) return "garbage";
  std::string text = proto.ShortDebugString();
  if (text.size() > 300) text = text.substr(0, 300) + "...";
  return text;
}

}  // namespace

std::string TextOf(const std::string& method, bool by_client, const Message& message) {
  if (method == kWorkMethod) {
    return by_client ? ShortText<proto::WorkerReport>(message)
                     : ShortText<proto::WorkerOrder>(message);
  }
  if (method == kExchangeMethod) {
    return by_client ? ShortText<proto::ExchangeRequest>(message)
                     : ShortText<proto::ExchangeReply>(message);
  }
  return by_client ? ShortText<proto::ControlRequest>(message)
                   : ShortText<proto::ControlReply>(message);
}

}  // namespace shoal
