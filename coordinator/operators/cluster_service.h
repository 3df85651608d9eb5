#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "proto/cluster.pb.h"

namespace shoal {

// The Cluster service of a coordinator: a stream for each request, whose answer may come at once or
// later. Requests have numbers; answering one whose asker has gone does nothing. Loop thread only.
class ClusterService {
 public:
  struct Options {
    std::function<proto::StatusReply()> status;
    // To be answered some time, by Answer or Refuse.
    std::function<void(uint64_t request, const proto::DrainRequest&)> on_drain;
    std::function<void(uint64_t request)> on_checkpoint;
    // Nobody waits for the answer any more, if anybody did.
    std::function<void(uint64_t request)> on_gone;
  };
  explicit ClusterService(Options options) : options_(std::move(options)) {}

  // A new stream, for a method that it serves.
  static bool Serves(const std::string& method);
  StreamCallbacks Accept(const std::string& method, std::unique_ptr<Stream> stream);

  void Answer(uint64_t request, const google::protobuf::MessageLite& reply);
  void Refuse(uint64_t request, const absl::Status& why);

 private:
  struct Call {
    std::unique_ptr<Stream> stream;
    bool asked = false;
  };
  void OnMessage(uint64_t request, const std::string& method, const Message& message);
  void OnHalfClosed(uint64_t request);

  const Options options_;
  uint64_t next_request_ = 1;
  std::map<uint64_t, Call> calls_;
};

}  // namespace shoal
