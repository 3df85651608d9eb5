#include "common/rpc/grpc/call/grpc_byte_buffer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/rpc/message_wire.h"

namespace shoal {
namespace {

using Owner = std::shared_ptr<const void>;

// Returns a slice of these bytes. It deletes `owners` when gRPC no longer needs the bytes.
template <typename Owners>
grpc::Slice Alias(const char* data, size_t size, Owners* owners) {
  return grpc::Slice(
      const_cast<char*>(data), size, [](void* owners) { delete static_cast<Owners*>(owners); },
      owners);
}

grpc::Slice HeadOf(const Message& message, const Owner& until_sent) {
  std::string head = EncodeHead(message);
  if (until_sent == nullptr) return grpc::Slice(head);
  auto* const kept = new std::pair<std::string, Owner>(std::move(head), until_sent);
  return Alias(kept->first.data(), kept->first.size(), kept);
}

}  // namespace

grpc::ByteBuffer ToByteBuffer(const Message& message, const Owner& until_sent) {
  std::vector<grpc::Slice> slices;
  slices.reserve(1 + message.payload.size());
  slices.push_back(HeadOf(message, until_sent));
  for (const Slice& slice : message.payload) {
    if (slice.size == 0) continue;
    auto* const owners = new std::pair<Owner, Owner>(slice.owner, until_sent);
    slices.push_back(Alias(slice.data, slice.size, owners));
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
