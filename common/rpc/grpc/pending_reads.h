#pragma once

#include <vector>

namespace shoal {

class GrpcCall;

// The calls of a network that have read a small message and shall read on once the loop has done
// what follows from it and looks for events again, whether it waits for them or not. With the next
// read HTTP/2's window opens again by what was read, for which gRPC sends a message of its own,
// unless another has taken it along meanwhile, as the answer does: that made four of two messages a
// step. On the loop's thread.
class PendingReads {
 public:
  void Add(GrpcCall* call) { calls_.push_back(call); }
  void Forget(GrpcCall* call);
  void Start();

 private:
  std::vector<GrpcCall*> calls_;
};

}  // namespace shoal
