// A message as a peer sends it, whole and in two slices, and where it says that its payload lies.

#include "common/rpc/message_wire.h"
#include "common/rpc/shared_payloads.h"
#include "tests/fuzz/fuzz_target.h"

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
  static const auto shared = shoal::SharedPayloads::Create();
  if (message.ok() && shared != nullptr) {
    shoal::Message found = *message;
    if (!shared->Find(&found).ok()) return 0;
    for (const shoal::Slice& slice : found.payload) {
      const volatile char* const read = slice.data;
      if (slice.size > 0) static_cast<void>(read[0] + read[slice.size - 1]);
    }
  }
  return 0;
}
