#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/coordinator/scripted_cluster.h"

namespace shoal {

// One request of an operator to a ScriptedCluster, and its result.
class OperatorRequest {
 public:
  static OperatorRequest Drain(ScriptedCluster* cluster, const std::string& type, uint32_t index) {
    proto::DrainRequest request;
    request.set_type(type);
    request.set_index(index);
    return {cluster, kDrainMethod, request};
  }
  static OperatorRequest Checkpoint(ScriptedCluster* cluster) {
    return {cluster, kCheckpointMethod, proto::CheckpointRequest()};
  }

  OperatorRequest(ScriptedCluster* cluster, const char* method,
                  const google::protobuf::MessageLite& request)
      : stream_(std::make_shared<FarEnd>(&cluster->loop, "operator", method)) {
    auto callbacks = cluster->run->Accept(method, stream_->MakeStream());
    EXPECT_TRUE(callbacks.ok()) << callbacks.status();
    const std::function<void()> half_closed = callbacks->on_half_closed;
    stream_->set_callbacks(*std::move(callbacks));
    stream_->Send(request);
    // As every unary client does.
    EXPECT_NE(half_closed, nullptr) << "it would get OK and no answer";
    cluster->loop.Post(half_closed);
    cluster->Settle();
  }
  // Acts like Ctrl-C in the operator's command.
  void Cancel() { stream_->Close(absl::UnavailableError("cancelled")); }
  bool answered() const { return stream_->finished().has_value(); }
  absl::Status status() const {
    return stream_->finished().value_or(absl::UnknownError("none yet"));
  }
  template <typename Reply>
  Reply reply() {
    const std::vector<Reply> replies = stream_->Take<Reply>();
    EXPECT_EQ(replies.size(), 1u);
    return replies.empty() ? Reply() : replies[0];
  }

 private:
  const std::shared_ptr<FarEnd> stream_;
};

}  // namespace shoal
