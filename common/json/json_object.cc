#include "common/json/json_object.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/text/nearest_name.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

// Gets the value as int64. Returns false unless it is an integer that fits.
bool AsInteger(const json& value, int64_t* out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return false;
  *out = value.get<int64_t>();
  return true;
}

std::string Describe(const NumberRange& range) {
  if (std::isinf(range.min)) return "a number";
  if (std::isinf(range.max)) {
    return absl::StrCat("a number ", range.above_min ? "greater than " : "of at least ",
                        NumberText(range.min));
  }
  return absl::StrCat(
      "a number ", range.above_min ? "greater than " : "from ", NumberText(range.min),
      range.below_max ? " and less than " : (range.above_min ? ", at most " : " to "),
      NumberText(range.max));
}

// Returns the end of a message about a missing key: an existing key that may be a misspelling of
// it.
std::string SuggestMisspelt(const char* key, const json& object) {
  std::vector<std::string> keys;
  for (const auto& item : object.items()) keys.push_back(item.key());
  const std::string nearest = NearestName(key, keys);
  if (nearest.empty()) return "";
  return absl::StrCat("; there is \"", nearest, "\", did you mean \"", key, "\"?");
}

}  // namespace

bool ReadKerasInteger(const json& value, int64_t* out) {
  if (value.is_number_unsigned()) {
    *out = static_cast<int64_t>(std::min(value.get<uint64_t>(), uint64_t{INT64_MAX}));
    return true;
  }
  if (value.is_number_integer()) {
    *out = value.get<int64_t>();
    return true;
  }
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  if (std::abs(number) >= 0x1p53 || std::trunc(number) != number) return false;
  *out = static_cast<int64_t>(number);
  return true;
}

JsonObject::JsonObject(const json& value, std::string path, JsonErrors* errors, JsonAuthor author)
    : value_(&value),
      path_(std::move(path)),
      errors_(errors),
      valid_(value.is_object()),
      author_(author) {
  if (!valid_) {
    errors_->Add(path_, absl::StrCat("is ", ShortJsonAndType(value), "; must be an object"));
  }
}

const json* JsonObject::Find(const char* key) {
  Ignore(key);
  if (!valid_) return nullptr;
  const auto found = value_->find(key);
  if (found == value_->end()) return nullptr;
  return author_ == JsonAuthor::kKeras && found->is_null() ? nullptr : &*found;
}

bool JsonObject::Contains(const char* key) const { return valid_ && value_->contains(key); }

const json* JsonObject::Require(const char* key, const char* meaning) {
  const json* value = Find(key);
  if (value != nullptr || !valid_) return value;
  // A person's misspelt key gets its own error as an unknown key.
  errors_->Add(PathOf(key),
               absl::StrCat(Contains(key) ? "is null: " : "is missing: ", meaning,
                            author_ == JsonAuthor::kKeras ? SuggestMisspelt(key, *value_) : ""));
  return nullptr;
}

void JsonObject::ReadBool(const char* key, bool* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) return AddWrong(key, *value, "true or false");
  *out = value->get<bool>();
}

void JsonObject::ReadInteger(const char* key, IntegerRange range, int64_t* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  int64_t integer = 0;
  const bool is_integer = author_ == JsonAuthor::kKeras ? ReadKerasInteger(*value, &integer)
                                                        : AsInteger(*value, &integer);
  if (!is_integer || integer < range.min || integer > range.max) {
    return AddWrong(key, *value, absl::StrCat("an integer from ", range.min, " to ", range.max));
  }
  *out = integer;
}

void JsonObject::ReadInteger(const char* key, IntegerRange range, uint64_t* out) {
  int64_t integer = static_cast<int64_t>(*out);
  ReadInteger(key, range, &integer);
  *out = static_cast<uint64_t>(integer);
}

void JsonObject::ReadInteger(const char* key, IntegerRange range, int* out) {
  int64_t integer = *out;
  ReadInteger(key, range, &integer);
  *out = static_cast<int>(integer);
}

void JsonObject::ReadNumber(const char* key, NumberRange range, double* out) {
  const json* value = Find(key);
  if (value == nullptr) return;
  const double number = value->is_number() ? value->get<double>() : 0;
  const bool low = range.above_min ? number <= range.min : number < range.min;
  const bool high = range.below_max ? number >= range.max : number > range.max;
  if (!value->is_number() || low || high) return AddWrong(key, *value, Describe(range));
  *out = number;
}

void JsonObject::Ignore(const char* key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.push_back(key);
}

void JsonObject::RejectUnknownKeys(const std::string& class_name) {
  if (!valid_) return;
  const std::string of_class =
      class_name.empty() ? "" : absl::StrCat(" of ", ShortJson(json(class_name)));
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    if (author_ == JsonAuthor::kPerson) {
      errors_->Add(PathOf(key),
                   absl::StrCat("is not a known key", of_class, SuggestName(key, known_)));
    } else if (!value.is_null()) {
      errors_->AddUnimplemented(PathOf(key),
                                absl::StrCat("is ", ShortJson(value), ", an option", of_class,
                                             " that Shoal lacks", SuggestName(key, known_)));
    }
  }
}

std::string JsonObject::PathOf(const std::string& key) const { return JsonPath(path_, key); }

void JsonObject::AddWrong(const char* key, const json& value, const std::string& expected) {
  errors_->Add(PathOf(key), absl::StrCat("is ", ShortJson(value), "; must be ", expected));
}

}  // namespace shoal
