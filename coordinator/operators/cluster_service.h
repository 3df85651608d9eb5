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

// The Cluster service of a coordinator. Each request has its own stream and a number; its answer
// may come at once or later. Ignores an answer to a request whose stream is gone. Loop thread only.
class ClusterService {
 public:
  struct Options {
    std::function<proto::StatusReply()> status;
    // These two: the owner must call Answer or Reject, now or later.
    std::function<void(uint64_t request, const proto::DrainRequest&)> on_drain;
    std::function<void(uint64_t request)> on_checkpoint;
    // An answer is no longer needed: the request's stream is gone or had a second message. May be
    // called twice for one request.
    std::function<void(uint64_t request)> on_gone;
  };
  explicit ClusterService(Options options) : options_(std::move(options)) {}

  static bool Serves(const std::string& method);
  // Takes over a new stream; returns the callbacks for it. Requires Serves(method).
  StreamCallbacks Accept(const std::string& method, std::unique_ptr<Stream> stream);

  void Answer(uint64_t request, const google::protobuf::MessageLite& reply);
  void Reject(uint64_t request, const absl::Status& why);

 private:
  struct Call {
    std::unique_ptr<Stream> stream;
    bool asked = false;
  };
  void OnMessage(uint64_t request, const std::string& method, const Message& message);
  // Parses a request. Rejects it and returns false if it is not of this type.
  bool Parse(uint64_t request, const Message& message, google::protobuf::MessageLite* proto);
  void OnHalfClosed(uint64_t request);

  const Options options_;
  uint64_t next_request_ = 1;
  std::map<uint64_t, Call> calls_;
};

}  // namespace shoal
