#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/message.h"

namespace shoal {

// gRPC's slices alias the payload and keep its owners until they are sent. `until_sent`, which may
// be null, is kept until all of the message is.
grpc::ByteBuffer ToByteBuffer(const Message& message,
                              const std::shared_ptr<const void>& until_sent = nullptr);

// The payload aliases gRPC's slices and keeps them. INVALID_ARGUMENT: not a message
// (DecodeMessage).
absl::StatusOr<Message> FromByteBuffer(const grpc::ByteBuffer& buffer);

}  // namespace shoal
