// The values of a call's metadata under kSharedPayloadsKey:
//
//   offer  = memory [ "," memory ]                       the halves, and the client's lent memory
//   memory = process "/" descriptor "/" random number    (SharedMemory::offer), all decimal
//   answer = "halves" [ ",lent" ]                        the memory that the server has opened

#include "common/rpc/shared/shared_payloads.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/shared_payload.pb.h"

namespace shoal {
namespace {

// A smaller payload travels in its message, which costs no more.
constexpr size_t kMinBytes = size_t{16} << 10;
// Max pieces of a lent payload (one with more is copied), and max size of a message's fields.
constexpr int kMaxLentPieces = 4096;
constexpr size_t kMaxFieldsBytes = size_t{1} << 20;

constexpr char kHalvesOpened[] = "halves";
constexpr char kLentOpened[] = "halves,lent";

// States of a flag. Only lent payloads use kFound.
constexpr uint32_t kFree = 0;
constexpr uint32_t kPlaced = 1;
constexpr uint32_t kFound = 2;

absl::Status InvalidPlace(uint64_t size, uint64_t offset, const char* where) {
  return absl::InvalidArgumentError(absl::StrCat("a payload of ", size, " bytes cannot lie at ",
                                                 offset, " of the memory ", where, " its sender"));
}

}  // namespace

// The flag before each payload, with the same alignment as the payload.
struct alignas(64) SharedPayloads::Flag {
  std::atomic<uint32_t> state;
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
};

SharedPayloads::SharedPayloads(std::shared_ptr<SharedMemory> memory,
                               std::shared_ptr<const SharedMemory> lent, bool client)
    : memory_(std::move(memory)), lent_(std::move(lent)), sends_(client ? 0 : 1) {}

void SharedPayloads::Revoke() {
  places_ = false;
  std::erase_if(placed_, [this](const Placed& placed) {
    uint32_t state = kPlaced;
    if (!placed.lent.empty())
      flag(sends_, placed.begin)->state.compare_exchange_strong(state, kFree);
    return !placed.lent.empty();
  });
}

std::unique_ptr<SharedPayloads> SharedPayloads::Create(std::shared_ptr<const SharedMemory> lent,
                                                       const SharedMemory::Room& room) {
  std::shared_ptr<SharedMemory> memory = SharedMemory::Create(2 * kSharedHalfBytes, room);
  if (memory == nullptr) return nullptr;
  return std::unique_ptr<SharedPayloads>(
      new SharedPayloads(std::move(memory), std::move(lent), /*client=*/true));
}

std::string SharedPayloads::offer() const {
  return lent_ == nullptr ? memory_->offer() : absl::StrCat(memory_->offer(), ",", lent_->offer());
}

std::unique_ptr<SharedPayloads> SharedPayloads::Open(const std::string& offer,
                                                     const SharedMemory::Room& room) {
  const std::vector<std::string> offers = absl::StrSplit(offer, absl::MaxSplits(',', 1));
  std::shared_ptr<SharedMemory> memory =
      SharedMemory::Open(offers[0], SharedMemory::Access::kReadAndWrite, room);
  if (memory == nullptr || memory->size_bytes() != 2 * kSharedHalfBytes) return nullptr;
  std::shared_ptr<const SharedMemory> lent;
  if (offers.size() > 1) lent = SharedMemory::Open(offers[1], SharedMemory::Access::kRead, room);
  return std::unique_ptr<SharedPayloads>(
      new SharedPayloads(std::move(memory), std::move(lent), /*client=*/false));
}

std::string SharedPayloads::answer() const {
  return lent_ == nullptr ? kHalvesOpened : kLentOpened;
}

void SharedPayloads::StartPlacing(const std::string& answer) {
  places_ = true;
  lends_ = sends_ == 0 && lent_ != nullptr && answer == kLentOpened;
}

SharedPayloads::Flag* SharedPayloads::flag(size_t half, size_t begin) const {
  return reinterpret_cast<Flag*>(this->half(half) + begin);
}

void SharedPayloads::Release() {
  std::erase_if(placed_, [&](const Placed& placed) {
    return flag(sends_, placed.begin)->state.load(std::memory_order_acquire) == kFree;
  });
}

std::optional<SharedPayloads::Placed> SharedPayloads::FreePlace(size_t bytes) {
  const size_t room = sizeof(Flag) + (bytes + sizeof(Flag) - 1) / sizeof(Flag) * sizeof(Flag);
  size_t begin = 0;
  for (const Placed& placed : placed_) {
    if (placed.begin >= begin + room) break;
    begin = placed.end;
  }
  const size_t end = begin + room;
  if (end > kSharedHalfBytes) return std::nullopt;
  if (end > reserved_bytes_) {
    const size_t half = sends_ * kSharedHalfBytes;
    if (!memory_->Reserve(half + reserved_bytes_, half + end)) return std::nullopt;
    reserved_bytes_ = end;
  }
  return Placed{.begin = begin, .end = end, .lent = {}};
}

bool SharedPayloads::Lends(const std::vector<Slice>& payload) const {
  return lends_ && payload.size() <= kMaxLentPieces &&
         std::ranges::all_of(payload, [this](const Slice& slice) {
           const char* const begin = lent_->data();
           return slice.data >= begin && slice.data + slice.size <= begin + lent_->size_bytes();
         });
}

void SharedPayloads::Place(Message* message) {
  const size_t bytes = message->payload_bytes();
  if (!places_ || bytes < kMinBytes) return;
  Release();
  const bool lends = Lends(message->payload);
  std::optional<Placed> placed = FreePlace(lends ? 0 : bytes);
  if (!placed.has_value()) return;

  proto::WithSharedPayload with;
  proto::SharedPayload* const place = with.mutable_shared_payload();
  place->set_offset(placed->begin + sizeof(Flag));
  if (lends) {
    for (const Slice& slice : message->payload) {
      proto::SharedPayload::Range* const range = place->add_lent();
      range->set_offset(slice.data - lent_->data());
      range->set_size(slice.size);
    }
    placed->lent = std::move(message->payload);
  } else {
    place->set_size(bytes);
    CopyPayload(*message, 0, half(sends_) + place->offset(), bytes);
  }
  flag(sends_, placed->begin)->state.store(kPlaced, std::memory_order_release);
  const auto behind = std::ranges::upper_bound(placed_, placed->begin, {}, &Placed::begin);
  placed_.insert(behind, *std::move(placed));
  with.AppendToString(&message->fields);
  message->payload.clear();
}

absl::Status SharedPayloads::Find(Message* message) {
  Release();
  if (message->fields.size() > kMaxFieldsBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a message of ", message->fields.size(),
                                                   " bytes without its payload; the max is ",
                                                   kMaxFieldsBytes));
  }
  proto::WithSharedPayload with;
  if (!with.ParseFromString(message->fields) || !with.has_shared_payload()) return absl::OkStatus();
  const proto::SharedPayload& place = with.shared_payload();
  const size_t half = 1 - sends_;
  if (!message->payload.empty() || place.size() > kSharedHalfBytes ||
      place.offset() > kSharedHalfBytes - place.size() || place.offset() < sizeof(Flag) ||
      place.offset() % sizeof(Flag) != 0) {
    return InvalidPlace(place.size(), place.offset(), "shared with");
  }
  const uint64_t lent_bytes = sends_ == 0 || lent_ == nullptr ? 0 : lent_->size_bytes();
  uint64_t bytes = 0;  // total of the ranges; no valid payload has a byte of lent memory twice
  for (const proto::SharedPayload::Range& range : place.lent()) {
    if (range.size() == 0 || range.size() > lent_bytes - bytes ||
        range.offset() > lent_bytes - range.size() || place.size() > 0 ||
        place.lent_size() > kMaxLentPieces) {
      return InvalidPlace(range.size(), range.offset(), "lent by");
    }
    bytes += range.size();
  }
  Flag* const flag = this->flag(half, place.offset() - sizeof(Flag));
  uint32_t state = kPlaced;
  if (place.lent_size() > 0 && !flag->state.compare_exchange_strong(state, kFound))
    return absl::InvalidArgumentError("the sender no longer lends this payload");
  // The payload's owner also keeps the memory alive, because a message may outlive its stream.
  const std::shared_ptr<const void> owner(flag, [memory = memory_, lent = lent_](Flag* flag) {
    flag->state.store(kFree, std::memory_order_release);
  });
  for (const proto::SharedPayload::Range& range : place.lent())
    message->payload.push_back({lent_->data() + range.offset(), range.size(), owner});
  if (place.lent().empty())
    message->payload = {{this->half(half) + place.offset(), place.size(), owner}};
  return absl::OkStatus();
}

}  // namespace shoal
