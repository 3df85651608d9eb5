#include "common/checkpoint/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

// The strict grammar of the header (https://huggingface.co/docs/safetensors):
//
//   header   = "{" [ member { "," member } ] "}" { " " }
//   member   = "__metadata__" ":" { string: string }
//            | NAME ":" tensor
//   tensor   = { "dtype": DTYPE, "shape": [ unsigned, ... ], "data_offsets": [ begin, end ] }
//
// Members are in any order, each once.

namespace shoal {
namespace {

using Json = nlohmann::json;

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kMaxRank = 64;

// Builds the header from the parser's events. This way it builds nothing outside the grammar. Stops
// at the first error and stores it in `status`.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  const absl::Status& status() const { return status_; }
  std::vector<TensorEntry> TakeTensors() { return std::move(tensors_); }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTop;
        return true;
      case Place::kTop:
        place_ = key_ == kMetadata ? Place::kMetadata : Place::kTensor;
        return true;
      default:
        return Unexpected("an object");
    }
  }
  bool end_object() override {
    if (place_ == Place::kTensor && !FinishTensor()) return false;
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }
  bool key(std::string& name) override {
    if (place_ == Place::kTop) {
      if (!names_.insert(name).second) return Fail(absl::StrCat("\"", name, "\" appears twice"));
      key_ = name;
      seen_fields_.clear();
      tensor_ = TensorEntry();
      tensor_.name = name;
      offsets_.clear();
      return true;
    }
    if (place_ == Place::kTensor && name != "dtype" && name != "shape" && name != "data_offsets") {
      return Fail(absl::StrCat(Here(), ": unknown field \"", name,
                               "\"; known are dtype, shape, data_offsets"));
    }
    if (!seen_fields_.insert(name).second) {
      return Fail(absl::StrCat(Here(), ": \"", name, "\" appears twice"));
    }
    field_ = name;
    return true;
  }
  bool start_array(size_t) override {
    if (place_ == Place::kTensor && field_ == "shape") {
      place_ = Place::kShape;
    } else if (place_ == Place::kTensor && field_ == "data_offsets") {
      place_ = Place::kOffsets;
    } else {
      return Unexpected("an array");
    }
    return true;
  }
  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (place_ == Place::kShape) {
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return Fail(absl::StrCat(Here(), ": extent ", value, " is too large"));
      }
      if (tensor_.shape.size() == kMaxRank) {
        return Fail(absl::StrCat(Here(), ": more than ", kMaxRank, " dimensions"));
      }
      tensor_.shape.push_back(static_cast<int64_t>(value));
      return true;
    }
    if (place_ == Place::kOffsets && offsets_.size() < 2) {
      offsets_.push_back(value);
      return true;
    }
    return Unexpected("a number");
  }
  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) return true;  // for people; not used
    if (place_ == Place::kTensor && field_ == "dtype") {
      tensor_.dtype = value;
      return true;
    }
    return Unexpected("a string");
  }
  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a boolean"); }
  bool number_integer(int64_t value) override { return Unexpected(absl::StrCat(value)); }
  bool number_float(double, const std::string& text) override {
    return Unexpected(absl::StrCat("the number ", text));
  }
  bool binary(Json::binary_t&) override { return Unexpected("binary data"); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("the header is not valid JSON at its byte ", position));
  }

 private:
  // Start -> Top -> Metadata -> Top            "__metadata__"
  //          Top -> Tensor -> Shape   -> Tensor -> Top
  //                 Tensor -> Offsets -> Tensor
  //          Top -> End
  enum class Place { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  bool FinishTensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (seen_fields_.count(field) == 0) {
        return Fail(absl::StrCat(Here(), ": \"", field, "\" is missing"));
      }
    }
    if (offsets_.size() != 2) {
      return Fail(absl::StrCat(Here(), ": data_offsets needs two numbers, begin and end"));
    }
    if (offsets_[1] < offsets_[0]) {
      return Fail(absl::StrCat(Here(), ": data_offsets end at ", offsets_[1],
                               ", before they begin at ", offsets_[0]));
    }
    tensor_.begin = offsets_[0];
    tensor_.size = offsets_[1] - offsets_[0];
    tensors_.push_back(std::move(tensor_));
    return true;
  }
  std::string Here() const { return absl::StrCat("\"", key_, "\""); }
  bool Unexpected(const std::string& what) {
    switch (place_) {
      case Place::kStart:
      case Place::kEnd:
        return Fail(absl::StrCat("the header is ", what, ", not an object"));
      case Place::kTop:
        return Fail(absl::StrCat(Here(), " is ", what, ", not an object"));
      case Place::kMetadata:
        return Fail(absl::StrCat(Here(), ": \"", field_, "\" is ", what, ", not a string"));
      case Place::kTensor:
        return Fail(absl::StrCat(Here(), ": ", field_, " cannot be ", what));
      case Place::kShape:
        return Fail(
            absl::StrCat(Here(), ": shape holds ", what, "; it is a list of numbers from 0 on"));
      case Place::kOffsets:
        return Fail(absl::StrCat(Here(), ": data_offsets holds ", what,
                                 " too much; it is two numbers, begin and end"));
    }
    return false;
  }
  bool Fail(const std::string& message) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(message);
    return false;
  }

  Place place_ = Place::kStart;
  std::string key_;    // at the top: tensor name or "__metadata__"
  std::string field_;  // below it
  std::unordered_set<std::string> names_;
  std::set<std::string> seen_fields_;
  TensorEntry tensor_;
  std::vector<uint64_t> offsets_;
  std::vector<TensorEntry> tensors_;
  absl::Status status_;
};

// Checks that dtype and shape match the size in the offsets.
absl::Status CheckSize(const TensorEntry& tensor) {
  uint64_t size = SafetensorsElementSize(tensor.dtype);
  if (size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", tensor.name, "\": unknown dtype \"", tensor.dtype, "\""));
  }
  for (const int64_t extent : tensor.shape) {
    if (__builtin_mul_overflow(size, static_cast<uint64_t>(extent), &size)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", tensor.name, "\": shape ",
                                                     ShapeToString(tensor.shape), " is too large"));
    }
  }
  if (size != tensor.size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", tensor.name, "\": ", tensor.dtype, " of shape ", ShapeToString(tensor.shape), " is ",
        size, " bytes, but data_offsets span ", tensor.size));
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t SafetensorsElementSize(const std::string& dtype) {
  for (const char* name : {"F64", "I64", "U64", "C64"}) {
    if (dtype == name) return 8;
  }
  for (const char* name : {"F32", "I32", "U32"}) {
    if (dtype == name) return 4;
  }
  for (const char* name : {"F16", "BF16", "I16", "U16"}) {
    if (dtype == name) return 2;
  }
  for (const char* name : {"BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"}) {
    if (dtype == name) return 1;
  }
  return 0;
}

absl::StatusOr<std::vector<TensorEntry>> ParseSafetensorsHeader(const std::string& json,
                                                                uint64_t data_begin,
                                                                uint64_t file_size) {
  // The JSON parser would also accept leading blanks and a byte order mark.
  if (json.empty() || json[0] != '{') {
    return absl::InvalidArgumentError("the header does not begin with \"{\"");
  }
  HeaderReader reader;
  const bool read = Json::sax_parse(json, &reader);
  if (!reader.status().ok()) return reader.status();
  if (!read) return absl::InvalidArgumentError("the header is not valid JSON");
  std::vector<TensorEntry> tensors = reader.TakeTensors();

  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.size, a.name) < std::tie(b.begin, b.size, b.name);
  });
  const uint64_t data_size = file_size - data_begin;
  uint64_t end = 0;
  for (TensorEntry& tensor : tensors) {
    SHOAL_RETURN_IF_ERROR(CheckSize(tensor));
    if (tensor.begin != end) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", tensor.name, "\" begins at byte ", tensor.begin, " of the data, ",
                       tensor.begin > end ? "leaving a hole" : "overlapping others",
                       "; the tensors before it end at ", end));
    }
    // The check below bounds both by the file's size.
    if (tensor.size > data_size - end) {
      return absl::InvalidArgumentError(absl::StrCat("\"", tensor.name, "\" needs ", tensor.size,
                                                     " bytes from byte ", end,
                                                     " of the data, which has ", data_size));
    }
    end += tensor.size;
    tensor.begin += data_begin;
  }
  if (end != data_size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the tensors end at byte ", end, " of the data, which has ", data_size));
  }
  return tensors;
}

}  // namespace shoal
