#include "coordinator/operators/cluster_service.h"

#include <utility>

#include "common/base/version.h"

namespace shoal {

bool ClusterService::Serves(const std::string& method) {
  return method == kStatusMethod || method == kDrainMethod || method == kCheckpointMethod;
}

StreamCallbacks ClusterService::Accept(const std::string& method, std::unique_ptr<Stream> stream) {
  const uint64_t request = next_request_++;
  calls_[request].stream = std::move(stream);
  return {.on_message = [this, request,
                         method](Message message) { OnMessage(request, method, message); },
          .on_half_closed = [this, request] { OnHalfClosed(request); },
          .on_closed =
              [this, request](absl::Status) {
                calls_.erase(request);
                options_.on_gone(request);
              }};
}

void ClusterService::OnMessage(uint64_t request, const std::string& method,
                               const Message& message) {
  if (std::exchange(calls_[request].asked, true)) {
    options_.on_gone(request);
    return Reject(request,
                  absl::InvalidArgumentError("the call has a second request; it may have one"));
  }
  if (method == kStatusMethod) {
    proto::StatusRequest status;
    if (Parse(request, message, &status)) Answer(request, options_.status());
  } else if (method == kDrainMethod) {
    proto::DrainRequest drain;
    if (Parse(request, message, &drain)) options_.on_drain(request, drain);
  } else {
    proto::CheckpointRequest checkpoint;
    if (Parse(request, message, &checkpoint)) options_.on_checkpoint(request);
  }
}

bool ClusterService::Parse(uint64_t request, const Message& message,
                           google::protobuf::MessageLite* proto) {
  if (ParseMessage(message, proto)) return true;
  Reject(request, InvalidMessageError("the client at " + calls_[request].stream->peer(),
                                      proto->GetTypeName()));
  return false;
}

// A unary client half-closes right after its request, and waits for the answer.
void ClusterService::OnHalfClosed(uint64_t request) {
  if (!calls_[request].asked)
    Reject(request, absl::InvalidArgumentError("the call ended without a request"));
}

void ClusterService::Answer(uint64_t request, const google::protobuf::MessageLite& reply) {
  const auto call = calls_.find(request);
  if (call == calls_.end()) return;
  call->second.stream->Send(MakeMessage(reply));
  call->second.stream->Finish(absl::OkStatus());
}

void ClusterService::Reject(uint64_t request, const absl::Status& why) {
  const auto call = calls_.find(request);
  if (call != calls_.end()) call->second.stream->Finish(why);
}

}  // namespace shoal
