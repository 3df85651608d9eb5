#pragma once

#include <cstddef>

namespace shoal {

// Limits of the transport that the memory of a ps follows (common/memory/memory_needs.h). They
// stand apart from GrpcNetwork: code that only computes with them does not link gRPC.

// Max payload that sources have made and gRPC has not sent, over all streams of a process.
inline constexpr size_t kMaxWritingBytes = size_t{256} << 20;
// Max streams on which a server shares memory with a client of its machine. Each takes twice
// kSharedHalfBytes (common/rpc/shared/shared_payloads.h).
inline constexpr size_t kMaxSharedStreams = 16;

}  // namespace shoal
