#include "worker/input/formats/tfrecord/example_record.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/json/json_errors.h"

namespace shoal {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr size_t kMaxKeysShown = 20;

absl::Status NoExample() { return absl::DataLossError("is no tf.train.Example"); }

// Reads the fields of one message in order. Rejects groups, which are obsolete.
class Fields {
 public:
  explicit Fields(Bytes message)
      : stream_(message.data(), static_cast<int>(message.size())),
        ok_(message.size() <= std::numeric_limits<int>::max()) {}

  // Moves to the next field. Returns false at the end, and, without ok(), at an invalid field.
  bool Next() {
    if (!ok_) return false;
    const uint32_t tag = stream_.ReadTag();
    if (tag == 0) {
      ok_ = stream_.ConsumedEntireMessage();
      return false;
    }
    number_ = tag >> 3;
    wire_type_ = static_cast<WireType>(tag & 7);
    uint64_t size = 0;
    switch (wire_type_) {
      case WireType::kVarint:
        return ok_ = stream_.ReadVarint64(&varint_);
      case WireType::kFixed64:
        size = 8;
        break;
      case WireType::kFixed32:
        size = 4;
        break;
      case WireType::kBytes:
        ok_ = stream_.ReadVarint64(&size);
        break;
      default:
        ok_ = false;
    }
    return ok_ = ok_ && Take(size);
  }
  bool ok() const { return ok_; }

  // Return the content of the current field, or nullopt if its number or wire type differs.
  std::optional<Bytes> bytes(uint32_t number) const { return Data(number, WireType::kBytes); }
  std::optional<Bytes> fixed32(uint32_t number) const { return Data(number, WireType::kFixed32); }
  std::optional<uint64_t> varint(uint32_t number) const {
    if (number_ != number || wire_type_ != WireType::kVarint) return std::nullopt;
    return varint_;
  }

 private:
  enum class WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  std::optional<Bytes> Data(uint32_t number, WireType type) const {
    if (number_ != number || wire_type_ != type) return std::nullopt;
    return data_;
  }
  bool Take(uint64_t size) {
    const void* begin = nullptr;
    int left = 0;
    if (size > 0 && !stream_.GetDirectBufferPointer(&begin, &left)) return false;
    if (size > static_cast<uint64_t>(left)) return false;
    data_ = Bytes(static_cast<const uint8_t*>(begin), size);
    return stream_.Skip(static_cast<int>(size));
  }

  google::protobuf::io::CodedInputStream stream_;
  bool ok_;
  uint32_t number_ = 0;
  WireType wire_type_ = WireType::kVarint;
  uint64_t varint_ = 0;
  Bytes data_;
};

// Calls `on_feature` with each key and its Feature.
absl::Status ForEachFeature(
    Bytes example, const std::function<void(std::string_view key, Bytes feature)>& on_feature) {
  Fields of_example(example);
  while (of_example.Next()) {
    const auto features = of_example.bytes(1);
    if (!features.has_value()) continue;
    Fields entries(*features);
    while (entries.Next()) {
      const auto entry = entries.bytes(1);
      if (!entry.has_value()) continue;
      Bytes key, feature;
      Fields of_entry(*entry);
      while (of_entry.Next()) {
        key = of_entry.bytes(1).value_or(key);
        feature = of_entry.bytes(2).value_or(feature);
      }
      if (!of_entry.ok()) return NoExample();
      on_feature({reinterpret_cast<const char*>(key.data()), key.size()}, feature);
    }
    if (!entries.ok()) return NoExample();
  }
  return of_example.ok() ? absl::OkStatus() : NoExample();
}

// The count of a Feature's values. Writes at most out.size() numbers.
struct ValueList {
  enum class Kind { kNone, kBytes, kFloat, kInt64 } kind = Kind::kNone;  // values are field numbers
  uint64_t count = 0;
  Bytes first;  // for kBytes

  absl::Status Read(Bytes feature, std::span<float> out) {
    Fields lists(feature);
    while (lists.Next()) {
      for (const Kind each : {Kind::kBytes, Kind::kFloat, Kind::kInt64}) {
        const auto list = lists.bytes(static_cast<uint32_t>(each));
        if (!list.has_value()) continue;
        kind = each;  // the last one wins
        count = 0;
        SHOAL_RETURN_IF_ERROR(ReadList(*list, out));
      }
    }
    return lists.ok() ? absl::OkStatus() : NoExample();
  }

 private:
  absl::Status ReadList(Bytes list, std::span<float> out) {
    const auto add = [&](float value) {
      if (count < out.size()) out[count] = value;
      ++count;
    };
    Fields values(list);
    while (values.Next()) {
      const auto bytes = values.bytes(1);
      if (kind == Kind::kBytes) {
        if (bytes.has_value() && ++count == 1) first = *bytes;
      } else if (kind == Kind::kFloat) {
        const Bytes numbers = bytes.has_value() ? *bytes : values.fixed32(1).value_or(Bytes());
        if (numbers.size() % sizeof(float) != 0) return NoExample();
        google::protobuf::io::CodedInputStream stream(numbers.data(),
                                                      static_cast<int>(numbers.size()));
        for (uint32_t bits; stream.ReadLittleEndian32(&bits);) add(std::bit_cast<float>(bits));
      } else if (bytes.has_value()) {
        const int size = static_cast<int>(bytes->size());
        google::protobuf::io::CodedInputStream stream(bytes->data(), size);
        while (stream.CurrentPosition() < size) {
          uint64_t number;
          if (!stream.ReadVarint64(&number)) return NoExample();
          add(static_cast<float>(static_cast<int64_t>(number)));
        }
      } else if (const auto number = values.varint(1); number.has_value()) {
        add(static_cast<float>(static_cast<int64_t>(*number)));
      }
    }
    return values.ok() ? absl::OkStatus() : NoExample();
  }
};

std::string TextOf(const ValueList& values) {
  switch (values.kind) {
    case ValueList::Kind::kInt64:
      return absl::StrCat(values.count, " int64");
    case ValueList::Kind::kFloat:
      return absl::StrCat(values.count, " float");
    case ValueList::Kind::kBytes:
      if (values.count != 1) return absl::StrCat(values.count, " byte strings");
      return IsJpeg(values.first) ? "a JPEG" : IsPng(values.first) ? "a PNG" : "bytes";
    case ValueList::Kind::kNone:
      break;
  }
  return "nothing";
}

absl::Status WrongCount(const std::string& key, uint64_t count, const char* what, size_t wanted) {
  return absl::DataLossError(
      absl::StrCat("\"", key, "\" holds ", count, " ", what, "; expected ", wanted));
}

absl::Status BytesToValues(const std::string& key, Bytes bytes, const PictureLoader* pictures,
                           MemoryBudget* memory, std::span<float> out) {
  if (IsJpeg(bytes) || IsPng(bytes)) {
    if (pictures == nullptr) {
      return absl::DataLossError(absl::StrCat("\"", key, "\" holds a picture; expected ",
                                              out.size(),
                                              out.size() == 1 ? " number" : " numbers"));
    }
    const absl::Status status = pictures->Load(bytes, memory, out);
    if (status.ok()) return status;
    return WithSource(absl::StrCat("\"", key, "\""), status);
  }
  if (bytes.size() != out.size())
    return WrongCount(key, bytes.size(), "bytes that are no JPEG or PNG", out.size());
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return absl::OkStatus();
}

std::string Joined(std::vector<std::string> keys) {
  std::sort(keys.begin(), keys.end());
  std::string text;
  for (const std::string& key : keys) absl::StrAppend(&text, text.empty() ? "" : ", ", key);
  return text.empty() ? "none" : Printable(text, kMaxNameBytes);
}

// Finds the values of `key` in `example`, and writes numbers into `out`.
absl::StatusOr<ValueList> FindValues(Bytes example, const std::string& key, std::span<float> out) {
  std::optional<Bytes> found;
  SHOAL_RETURN_IF_ERROR(ForEachFeature(example, [&](std::string_view each, Bytes feature) {
    if (each == key) found = feature;
  }));
  if (!found.has_value()) {
    std::vector<std::string> keys;  // the first keys
    SHOAL_RETURN_IF_ERROR(ForEachFeature(example, [&](std::string_view each, Bytes) {
      if (keys.size() < kMaxKeysShown) keys.emplace_back(each.substr(0, kMaxNameBytes));
    }));
    return absl::DataLossError(
        absl::StrCat("has no key \"", key, "\"; its keys: ", Joined(std::move(keys))));
  }
  ValueList values;
  SHOAL_RETURN_IF_ERROR(values.Read(*found, out));
  return values;
}

absl::Status CheckCount(const std::string& key, const ValueList& values, size_t wanted) {
  if (values.count == wanted) return absl::OkStatus();
  return WrongCount(key, values.count,
                    values.kind == ValueList::Kind::kFloat   ? "float values"
                    : values.kind == ValueList::Kind::kInt64 ? "int64 values"
                                                             : "values",
                    wanted);
}

}  // namespace

absl::Status ExampleRecord::Describe(
    const std::function<void(std::string_view key, const std::string& kind)>& on_feature) const {
  absl::Status status;
  SHOAL_RETURN_IF_ERROR(ForEachFeature(data_, [&](std::string_view key, Bytes feature) {
    ValueList values;
    status.Update(values.Read(feature, {}));
    if (status.ok()) on_feature(key, TextOf(values));
  }));
  return status;
}

absl::Status ExampleRecord::Values(const std::string& key, const PictureLoader* pictures,
                                   MemoryBudget* memory, std::span<float> out) const {
  SHOAL_ASSIGN_OR_RETURN(const ValueList values, FindValues(data_, key, out));
  if (values.kind != ValueList::Kind::kBytes) return CheckCount(key, values, out.size());
  if (values.count != 1) return WrongCount(key, values.count, "byte strings", 1);
  return BytesToValues(key, values.first, pictures, memory, out);
}

absl::Status ExampleRecord::Label(const std::string& key, std::span<float> out) const {
  SHOAL_ASSIGN_OR_RETURN(const ValueList values, FindValues(data_, key, out));
  if (values.kind != ValueList::Kind::kBytes) return CheckCount(key, values, out.size());
  return absl::DataLossError(absl::StrCat("\"", key, "\" holds ", TextOf(values), "; expected ",
                                          out.size(), out.size() == 1 ? " number" : " numbers",
                                          ", as int64 or float"));
}

}  // namespace shoal
