#include "worker/input/example_record.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "proto/example.pb.h"

namespace shoal {
namespace {

absl::Status WrongCount(const std::string& key, int64_t count, const char* what, size_t wanted) {
  return absl::DataLossError(
      absl::StrCat("\"", key, "\" holds ", count, " ", what, "; expected ", wanted));
}

absl::Status BytesToValues(const std::string& key, const example::BytesList& list,
                           const PictureLoader* pictures, std::span<float> out) {
  if (list.value_size() != 1) return WrongCount(key, list.value_size(), "byte strings", 1);
  const std::string& text = list.value(0);
  const std::span bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  if (IsJpeg(bytes) || IsPng(bytes)) {
    if (pictures == nullptr) {
      return absl::DataLossError(absl::StrCat("\"", key, "\" holds a picture; expected ",
                                              out.size(),
                                              out.size() == 1 ? " number" : " numbers"));
    }
    const absl::Status status = pictures->Load(bytes, out);
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat("\"", key, "\": ", std::string(status.message())));
  }
  if (bytes.size() != out.size()) {
    return WrongCount(key, static_cast<int64_t>(bytes.size()), "bytes that are no JPEG or PNG",
                      out.size());
  }
  std::copy(bytes.begin(), bytes.end(), out.begin());
  return absl::OkStatus();
}

// The first keys, for messages.
std::string KeysOf(const example::Example& example) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : example.features().feature()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  std::string text;
  for (const std::string& key : keys) absl::StrAppend(&text, text.empty() ? "" : ", ", key);
  return text.empty() ? "nothing" : Printable(text, kMostNameBytes);
}

}  // namespace

ExampleRecord::ExampleRecord() : example_(std::make_unique<example::Example>()) {}
ExampleRecord::~ExampleRecord() = default;

absl::Status ExampleRecord::Parse(std::span<const uint8_t> data) {
  if (data.size() <= std::numeric_limits<int>::max() &&
      example_->ParseFromArray(data.data(), static_cast<int>(data.size()))) {
    return absl::OkStatus();
  }
  return absl::DataLossError("is no tf.train.Example");
}

std::vector<std::pair<std::string, std::string>> ExampleRecord::Describe() const {
  const auto describe = [](const example::Feature& feature) -> std::string {
    switch (feature.kind_case()) {
      case example::Feature::kInt64List:
        return absl::StrCat(feature.int64_list().value_size(), " int64");
      case example::Feature::kFloatList:
        return absl::StrCat(feature.float_list().value_size(), " float");
      case example::Feature::kBytesList: {
        const example::BytesList& list = feature.bytes_list();
        if (list.value_size() != 1) return absl::StrCat(list.value_size(), " byte strings");
        const std::span bytes(reinterpret_cast<const uint8_t*>(list.value(0).data()),
                              list.value(0).size());
        return IsJpeg(bytes) ? "a JPEG" : IsPng(bytes) ? "a PNG" : "bytes";
      }
      case example::Feature::KIND_NOT_SET:
        break;
    }
    return "nothing";
  };
  std::vector<std::pair<std::string, std::string>> keys;
  for (const auto& [key, feature] : example_->features().feature()) {
    keys.emplace_back(key, describe(feature));
  }
  return keys;
}

absl::Status ExampleRecord::Values(const std::string& key, const PictureLoader* pictures,
                                   std::span<float> out) const {
  const auto& features = example_->features().feature();
  const auto found = features.find(key);
  if (found == features.end()) {
    return absl::DataLossError(
        absl::StrCat("has no key \"", key, "\"; there is ", KeysOf(*example_)));
  }
  const auto copy = [&](const auto& values, const char* what) {
    if (static_cast<size_t>(values.size()) != out.size()) {
      return WrongCount(key, values.size(), what, out.size());
    }
    std::copy(values.begin(), values.end(), out.begin());
    return absl::OkStatus();
  };
  switch (found->second.kind_case()) {
    case example::Feature::kInt64List:
      return copy(found->second.int64_list().value(), "int64 values");
    case example::Feature::kFloatList:
      return copy(found->second.float_list().value(), "float values");
    case example::Feature::kBytesList:
      return BytesToValues(key, found->second.bytes_list(), pictures, out);
    case example::Feature::KIND_NOT_SET:
      break;
  }
  return WrongCount(key, 0, "values", out.size());
}

}  // namespace shoal
