#pragma once

#include <cstddef>
#include <string>

namespace shoal {

// The methods of Shoal's services (proto/), by the names that gRPC sends.
inline constexpr char kWorkMethod[] = "/shoal.proto.Coordinator/Work";
inline constexpr char kEvaluateMethod[] = "/shoal.proto.Evaluation/Evaluate";
inline constexpr char kExchangeMethod[] = "/shoal.proto.ParameterServer/Exchange";
inline constexpr char kControlMethod[] = "/shoal.proto.ParameterServer/Control";
inline constexpr char kStatusMethod[] = "/shoal.proto.Cluster/Status";
inline constexpr char kDrainMethod[] = "/shoal.proto.Cluster/Drain";
inline constexpr char kCheckpointMethod[] = "/shoal.proto.Cluster/Checkpoint";

// Max size of a message that a worker sends to a ps: the largest chunk (kMaxChunkBytes of
// common/sharding/chunk_limits.h, whose test compares the two) and its fields.
inline constexpr size_t kMaxExchangeBytes = size_t{17} << 20;

// The transport's treatment of a method's streams.
struct MethodTraits {
  size_t max_request_bytes = size_t{64} << 10;  // of one message from the client
  size_t max_trusted_request_bytes = 0;  // the same after Stream::TrustClient(), if it is larger
  bool shares_payloads = false;          // with peers of the same machine, in shared memory
};
// Returns the defaults for unknown methods.
MethodTraits TraitsOf(const std::string& method);

}  // namespace shoal
