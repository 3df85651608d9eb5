#pragma once

#include <vector>

namespace shoal {

class GrpcCall;

// The calls of a network that have read a small message and have not begun their next read. They
// read when the loop has handled the message and looks for events again. A read opens HTTP/2's
// window, and gRPC sends a message for this unless it can travel with another one, such as the
// answer. Reads that began earlier would make four messages a step out of two. Loop thread only.
class PendingReads {
 public:
  void Add(GrpcCall* call) { calls_.push_back(call); }
  void Forget(GrpcCall* call);
  // Begins all pending reads.
  void Start();

 private:
  std::vector<GrpcCall*> calls_;
};

}  // namespace shoal
