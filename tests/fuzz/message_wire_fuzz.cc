// A message as a peer sends it, whole and in two slices, and where it says that its payload lies.

#include "common/rpc/message_wire.h"
#include "common/rpc/shared/shared_payloads.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr size_t kBytes = 100000;

// Both ends of a stream, each of which has placed a payload for the other.
class Shared {
 public:
  explicit Shared(std::shared_ptr<const shoal::SharedMemory> lent)
      : lent_(std::move(lent)), client_(shoal::SharedPayloads::Create(lent_)) {
    if (client_ == nullptr) return;
    server_ = shoal::SharedPayloads::Open(
        client_->offer(),
        std::make_shared<shoal::SharedMemoryRoom>(shoal::SharedMemoryRoom::Options()));
    if (server_ == nullptr) return;
    client_->StartPlacing(server_->answer());
    server_->StartPlacing(server_->answer());
    Place(*server_, copied_.data());
  }

  // Reads the payload of a message where it says that it lies, at either end.
  void Read(const shoal::Message& message) {
    if (server_ == nullptr) return;
    // Anew when it was read, which the client knows by what it hears.
    if (owner_.use_count() == 1) Place(*client_, lent_ == nullptr ? copied_.data() : lent_->data());
    for (shoal::SharedPayloads* const end : {client_.get(), server_.get()}) {
      shoal::Message found = message;
      if (!end->Find(&found).ok()) continue;
      for (const shoal::Slice& slice : found.payload) {
        const volatile char* const read = slice.data;
        if (slice.size > 0) static_cast<void>(read[0] + read[slice.size - 1]);
      }
    }
  }

 private:
  void Place(shoal::SharedPayloads& end, const char* payload) {
    shoal::Message placed{.fields = "", .payload = {{payload, kBytes, owner_}}};
    end.Place(&placed);
  }

  const std::string copied_ = std::string(kBytes, 'a');
  const std::shared_ptr<const shoal::SharedMemory> lent_;  // by the client; null: nothing
  const std::shared_ptr<const int> owner_ = std::make_shared<int>();
  const std::unique_ptr<shoal::SharedPayloads> client_;
  std::unique_ptr<shoal::SharedPayloads> server_;
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
  static Shared lending(shoal::SharedMemory::Create(kBytes));
  static Shared plain(nullptr);
  if (!message.ok()) return 0;
  lending.Read(*message);
  plain.Read(*message);
  return 0;
}
