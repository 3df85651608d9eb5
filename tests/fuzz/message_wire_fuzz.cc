// A message as a peer sends it, whole and in two slices, and where it says that its payload lies.

#include "common/rpc/message_wire.h"
#include "common/rpc/shared_payloads.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

// Both ends of a stream, of which the client lends memory, and has placed a payload of it.
class Shared {
 public:
  Shared() : lent_(shoal::SharedMemory::Create(kBytes)) {
    if (lent_ == nullptr) return;
    client_ = shoal::SharedPayloads::Create(lent_);
    if (client_ == nullptr) return;
    server_ = shoal::SharedPayloads::Open(client_->offer());
    if (server_ != nullptr) client_->BeginToPlace(server_->answer());
  }

  // Reads the payload of a message where it says that it lies.
  void Read(shoal::Message message) {
    if (server_ == nullptr) return;
    shoal::Message nothing;
    static_cast<void>(client_->Find(&nothing));  // by which it knows what was read
    if (owner_.use_count() == 1) {
      shoal::Message placed{.fields = "", .payload = {{lent_->data(), kBytes, owner_}}};
      client_->Place(&placed);
    }
    if (!server_->Find(&message).ok()) return;
    for (const shoal::Slice& slice : message.payload) {
      const volatile char* const read = slice.data;
      if (slice.size > 0) static_cast<void>(read[0] + read[slice.size - 1]);
    }
  }

 private:
  static constexpr size_t kBytes = 100000;
  std::shared_ptr<shoal::SharedMemory> lent_;
  std::unique_ptr<shoal::SharedPayloads> client_, server_;
  const std::shared_ptr<const int> owner_ = std::make_shared<int>();
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const char* const bytes = reinterpret_cast<const char*>(data);
  const shoal::Slice whole{.data = bytes, .size = size};
  const size_t middle = size > 0 ? data[0] % (size + 1) : 0;
  const shoal::Slice halves[] = {{.data = bytes, .size = middle},
                                 {.data = bytes + middle, .size = size - middle}};
  const auto message = shoal::DecodeMessage(std::span(&whole, 1));
  const auto pieces = shoal::DecodeMessage(halves);
  if (message.ok() != pieces.ok()) std::abort();
  if (message.ok() &&
      (message->fields != pieces->fields || message->payload_bytes() != pieces->payload_bytes() ||
       shoal::EncodedSize(*message) > size + 10))
    std::abort();
  static Shared shared;
  if (message.ok()) shared.Read(*message);
  return 0;
}
