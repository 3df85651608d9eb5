#include "common/rpc/grpc_byte_buffer.h"

#include <memory>
#include <string>
#include <vector>

#include "common/rpc/message_wire.h"

namespace shoal {
namespace {

using Owner = std::shared_ptr<const void>;

grpc::Slice Alias(const Slice& slice) {
  auto* owner = new Owner(slice.owner);
  return grpc::Slice(
      const_cast<char*>(slice.data), slice.size,
      [](void* owner) { delete static_cast<Owner*>(owner); }, owner);
}

}  // namespace

grpc::ByteBuffer ToByteBuffer(const Message& message) {
  std::vector<grpc::Slice> slices;
  slices.reserve(1 + message.payload.size());
  slices.emplace_back(EncodeHead(message));
  for (const Slice& slice : message.payload) {
    if (slice.size > 0) slices.push_back(Alias(slice));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

absl::StatusOr<Message> FromByteBuffer(const grpc::ByteBuffer& buffer) {
  // One owner for all slices of the message: they are freed together.
  auto received = std::make_shared<std::vector<grpc::Slice>>();
  if (!buffer.Dump(received.get()).ok()) {
    return absl::InvalidArgumentError("the message could not be read");
  }
  std::vector<Slice> slices;
  slices.reserve(received->size());
  for (const grpc::Slice& slice : *received) {
    slices.push_back({reinterpret_cast<const char*>(slice.begin()), slice.size(), received});
  }
  return DecodeMessage(slices);
}

}  // namespace shoal
