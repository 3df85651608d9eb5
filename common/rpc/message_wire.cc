#include "common/rpc/message_wire.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

constexpr char kPayloadTag = 0x7a;
constexpr uint64_t kPayloadField = 15;

enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

size_t VarintSize(uint64_t value) {
  size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// Reads forward through consecutive slices.
class Cursor {
 public:
  explicit Cursor(std::span<const Slice> slices) : slices_(slices) {
    for (const Slice& slice : slices) size_ += slice.size;
    SkipEmpty();
  }

  size_t position() const { return position_; }
  size_t remaining() const { return size_ - position_; }

  // Returns false at the end of the bytes, or for a number of more than 64 bits.
  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (remaining() == 0) return false;
      const auto byte = static_cast<uint8_t>(slices_.front().data[offset_]);
      Skip(1);
      if (shift == 63 && byte > 1) return false;
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  // Returns false, and does not move, if fewer bytes are left.
  bool Skip(uint64_t bytes) {
    if (bytes > remaining()) return false;
    position_ += bytes;
    offset_ += bytes;
    SkipEmpty();
    return true;
  }

  // Returns the rest, without a copy.
  std::vector<Slice> Rest() const {
    std::vector<Slice> rest(slices_.begin(), slices_.end());
    if (!rest.empty()) {
      rest.front().data += offset_;
      rest.front().size -= offset_;
    }
    std::erase_if(rest, [](const Slice& slice) { return slice.size == 0; });
    return rest;
  }

 private:
  void SkipEmpty() {
    while (!slices_.empty() && offset_ >= slices_.front().size) {
      offset_ -= slices_.front().size;
      slices_ = slices_.subspan(1);
    }
  }

  std::span<const Slice> slices_;  // the first one has the next byte
  size_t offset_ = 0;              // of the next byte in the first slice
  size_t position_ = 0;
  size_t size_ = 0;
};

absl::Status Invalid(size_t position, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the message is not valid protobuf: ", what, " at byte ", position));
}

std::string CopyFirst(std::span<const Slice> slices, size_t size) {
  std::string copy;
  copy.reserve(size);
  for (const Slice& slice : slices) {
    copy.append(slice.data, std::min(slice.size, size - copy.size()));
    if (copy.size() == size) break;
  }
  return copy;
}

}  // namespace

std::string EncodeHead(const Message& message) {
  std::string head = message.fields;
  const size_t payload = message.payload_bytes();
  if (payload > 0) {
    head.push_back(kPayloadTag);
    AppendVarint(payload, &head);
  }
  return head;
}

size_t EncodedSize(const Message& message) {
  const size_t payload = message.payload_bytes();
  return message.fields.size() + (payload == 0 ? 0 : 1 + VarintSize(payload) + payload);
}

absl::StatusOr<Message> DecodeMessage(std::span<const Slice> bytes) {
  Cursor cursor(bytes);
  Message message;
  while (cursor.remaining() > 0) {
    const size_t start = cursor.position();
    uint64_t tag = 0;
    if (!cursor.ReadVarint(&tag) || tag > UINT32_MAX || tag >> 3 == 0) {
      return Invalid(start, "an invalid field number");
    }
    uint64_t size = 0;
    switch (tag & 7) {
      case kVarint:
        if (!cursor.ReadVarint(&size)) return Invalid(start, "an unfinished number");
        continue;
      case kFixed64:
        size = 8;
        break;
      case kFixed32:
        size = 4;
        break;
      case kLengthDelimited:
        if (!cursor.ReadVarint(&size)) return Invalid(start, "an unfinished length");
        break;
      default:
        return Invalid(start, absl::StrCat("wire type ", tag & 7, ", which Shoal does not use,"));
    }
    if (size > cursor.remaining()) {
      return Invalid(start, absl::StrCat("a field of ", size, " bytes with ", cursor.remaining(),
                                         " bytes left,"));
    }
    if (tag >> 3 == kPayloadField && (tag & 7) == kLengthDelimited) {
      if (size != cursor.remaining()) {
        return Invalid(start, absl::StrCat("a payload (field 15) with ", cursor.remaining() - size,
                                           " bytes after it; it must be the last field,"));
      }
      message.payload = cursor.Rest();
      message.fields = CopyFirst(bytes, start);
      return message;
    }
    cursor.Skip(size);
  }
  message.fields = CopyFirst(bytes, cursor.position());
  return message;
}

}  // namespace shoal
