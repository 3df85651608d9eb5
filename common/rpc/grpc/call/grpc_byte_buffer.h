#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/message.h"

namespace shoal {

// Returns the message as gRPC's slices. They alias the payload and keep its owners alive until gRPC
// has sent them. `until_sent` lives until all of the message is sent; it may be null.
grpc::ByteBuffer ToByteBuffer(const Message& message,
                              const std::shared_ptr<const void>& until_sent = nullptr);

// Returns the received message. The payload aliases gRPC's slices and keeps them alive.
// INVALID_ARGUMENT: the bytes are not a message (DecodeMessage).
absl::StatusOr<Message> FromByteBuffer(const grpc::ByteBuffer& buffer);

}  // namespace shoal
