#pragma once

#include <grpcpp/support/byte_buffer.h>

#include "absl/status/statusor.h"
#include "common/rpc/message.h"

namespace shoal {

// gRPC's slices alias the payload and keep its owners until they are sent.
grpc::ByteBuffer ToByteBuffer(const Message& message);

// The payload aliases gRPC's slices and keeps them. INVALID_ARGUMENT: not a message
// (DecodeMessage).
absl::StatusOr<Message> FromByteBuffer(const grpc::ByteBuffer& buffer);

}  // namespace shoal
