#include "common/rpc/field_limits.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"

namespace shoal {
namespace {

using google::protobuf::internal::WireFormatLite;

// A varint ends with the byte whose highest bit is 0.
uint64_t CountVarints(std::string_view bytes) {
  return static_cast<uint64_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char byte) { return (byte & 0x80) == 0; }));
}

// Returns the number of elements of `limit.field` in an encoding, or in its field `kind` if given.
// Stops at a malformed part, because the parse fails there.
uint64_t Count(std::string_view encoding, std::optional<int> kind, const FieldLimit& limit) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(encoding.data()),
                                               static_cast<int>(encoding.size()));
  uint64_t count = 0;
  while (const uint32_t tag = input.ReadTag()) {
    const bool wanted = WireFormatLite::GetTagFieldNumber(tag) == kind.value_or(limit.field);
    if (!wanted ||
        WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&input, tag)) break;
      count += wanted && !kind.has_value() ? 1 : 0;
      continue;
    }
    uint32_t size = 0;
    if (!input.ReadVarint32(&size)) break;
    const auto begin = static_cast<size_t>(input.CurrentPosition());
    if (!input.Skip(static_cast<int>(size))) break;
    const std::string_view inner = encoding.substr(begin, size);
    count += kind.has_value() ? Count(inner, std::nullopt, limit)
             : limit.packed   ? CountVarints(inner)
                              : 1;
  }
  return count;
}

}  // namespace

absl::Status ParseWithin(std::span<const FieldLimit> limits, const Message& message,
                         absl::FunctionRef<std::string()> peer,
                         google::protobuf::MessageLite* proto) {
  for (const FieldLimit& limit : limits) {
    // Each element has at least one byte.
    if (message.fields.size() <= limit.max) continue;
    const uint64_t count = Count(message.fields, limit.kind, limit);
    if (count > limit.max) {
      return absl::ResourceExhaustedError(
          absl::StrCat(peer(), " sent ", count, " elements in field ", limit.kind, ".", limit.field,
                       " of a ", proto->GetTypeName(), "; at most ", limit.max, " are allowed"));
    }
  }
  if (ParseMessage(message, proto)) return absl::OkStatus();
  return InvalidMessageError(peer(), proto->GetTypeName());
}

}  // namespace shoal
