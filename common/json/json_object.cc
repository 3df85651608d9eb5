#include "common/json/json_object.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
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
  return absl::StrCat(
      "a number ", range.above_min ? "greater than " : "from ", NumberText(range.min),
      range.below_max ? " and less than " : (range.above_min ? ", at most " : " to "),
      NumberText(range.max));
}

}  // namespace

JsonObject::JsonObject(const json& value, std::string path, JsonErrors* errors)
    : value_(&value), path_(std::move(path)), errors_(errors), valid_(value.is_object()) {
  if (!valid_) {
    errors_->Add(path_, absl::StrCat("is ", ShortJsonAndType(value), "; must be an object"));
  }
}

const json* JsonObject::Find(const char* key) {
  Ignore(key);
  if (!valid_) return nullptr;
  const auto found = value_->find(key);
  return found == value_->end() ? nullptr : &*found;
}

const json* JsonObject::Require(const char* key, const char* meaning) {
  const json* value = Find(key);
  if (value == nullptr && valid_) errors_->Add(PathOf(key), absl::StrCat("is missing: ", meaning));
  return value;
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
  if (!AsInteger(*value, &integer) || integer < range.min || integer > range.max) {
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

void JsonObject::RejectUnknownKeys() {
  if (!valid_) return;
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    errors_->Add(PathOf(key), absl::StrCat("is not a known key", SuggestName(key, known_)));
  }
}

std::string JsonObject::PathOf(const std::string& key) const { return JsonPath(path_, key); }

void JsonObject::AddWrong(const char* key, const json& value, const std::string& expected) {
  errors_->Add(PathOf(key), absl::StrCat("is ", ShortJson(value), "; must be ", expected));
}

}  // namespace shoal
