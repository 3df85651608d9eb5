#include "coordinator/cluster_service.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {

bool ClusterService::Serves(const std::string& method) {
  return method == kStatusMethod || method == kDrainMethod || method == kCheckpointMethod;
}

StreamCallbacks ClusterService::Accept(const std::string& method, std::unique_ptr<Stream> stream) {
  const uint64_t request = next_request_++;
  streams_[request] = std::move(stream);
  return {.on_message = [this, request,
                         method](Message message) { OnMessage(request, method, message); },
          .on_closed = [this, request](absl::Status) { streams_.erase(request); }};
}

void ClusterService::OnMessage(uint64_t request, const std::string& method,
                               const Message& message) {
  proto::StatusRequest status;
  proto::DrainRequest drain;
  proto::CheckpointRequest checkpoint;
  if (method == kStatusMethod && ParseMessage(message, &status)) {
    return Answer(request, options_.status());
  }
  if (method == kDrainMethod && ParseMessage(message, &drain)) {
    return options_.on_drain(request, drain);
  }
  if (method == kCheckpointMethod && ParseMessage(message, &checkpoint)) {
    return options_.on_checkpoint(request);
  }
  Refuse(request, absl::InvalidArgumentError(
                      absl::StrCat("not a request of proto/cluster.proto for ", method)));
}

void ClusterService::Answer(uint64_t request, const google::protobuf::MessageLite& reply) {
  const auto stream = streams_.find(request);
  if (stream == streams_.end()) return;
  stream->second->Send(MakeMessage(reply));
  stream->second->Finish(absl::OkStatus());
}

void ClusterService::Refuse(uint64_t request, const absl::Status& why) {
  const auto stream = streams_.find(request);
  if (stream != streams_.end()) stream->second->Finish(why);
}

}  // namespace shoal
