#include "common/json/keras_options.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text/nearest_name.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr char kRequired[] = "required";

std::string RangeText(const NumberRange& range) {
  if (std::isinf(range.min)) return "any number";
  const std::string min = NumberText(range.min);
  if (std::isinf(range.max)) return absl::StrCat(range.above_min ? "above " : "at least ", min);
  const std::string max = NumberText(range.max);
  if (range.above_min)
    return absl::StrCat("above ", min, range.below_max ? ", below " : ", to ", max);
  return range.below_max ? absl::StrCat("from ", min, ", below ", max)
                         : absl::StrCat(min, " to ", max);
}

std::string RangeText(const IntegerRange& range) {
  return absl::StrCat("integer, ", range.min, " to ", range.max);
}

template <typename Range>
std::string Described(const char* key, const std::string& otherwise, const Range& range) {
  return absl::StrCat("`", key, "` (", otherwise, "; ", RangeText(range), ")");
}

}  // namespace

KerasOptions::KerasOptions(const KerasObject& object, JsonErrors* errors)
    : none_(std::make_unique<const json>(json::object())),
      class_name_(object.class_name),
      given_(object.config == nullptr ? *none_ : *object.config, object.config_path, errors,
             object.author),
      config_(object.config, object.config_path),
      resolved_(std::make_unique<json>(json::object())) {}

KerasOptions::~KerasOptions() = default;

void KerasOptions::Resolve(const char* key, const json& value, const std::string& description) {
  (*resolved_)[key] = value;
  if (!description.empty()) descriptions_.push_back(description);
}

double KerasOptions::Number(const char* key, double otherwise, NumberRange range) {
  double value = otherwise;
  given_.ReadNumber(key, range, &value);
  Resolve(key, value, Described(key, NumberText(otherwise), range));
  return value;
}

std::optional<double> KerasOptions::NumberOrNull(const char* key, std::optional<double> otherwise,
                                                 NumberRange range) {
  const json* given = given_.Find(key);
  std::optional<double> value = otherwise;
  if (given != nullptr) {
    value.reset();
    double number = 0;
    if (!given->is_null()) {
      given_.ReadNumber(key, range, &number);
      value = number;
    }
  }
  Resolve(key, value.has_value() ? json(*value) : json(),
          Described(key, otherwise.has_value() ? NumberText(*otherwise) : "null", range));
  return value;
}

int64_t KerasOptions::Integer(const char* key, int64_t otherwise, IntegerRange range) {
  int64_t value = otherwise;
  given_.ReadInteger(key, range, &value);
  Resolve(key, value, Described(key, absl::StrCat(otherwise), range));
  return value;
}

std::optional<uint64_t> KerasOptions::IntegerOrNull(const char* key, IntegerRange range) {
  std::optional<uint64_t> value;
  if (const json* given = given_.Find(key); given != nullptr && !given->is_null()) {
    value = 0;
    given_.ReadInteger(key, range, &*value);
  }
  Resolve(key, value.has_value() ? json(*value) : json(), Described(key, "null", range));
  return value;
}

bool KerasOptions::Flag(const char* key, bool otherwise) {
  bool value = otherwise;
  given_.ReadBool(key, &value);
  Resolve(key, value, absl::StrCat("`", key, "` (", otherwise ? "true" : "false", ")"));
  return value;
}

size_t KerasOptions::OneOf(const char* key, const std::vector<std::string>& names,
                           size_t otherwise) {
  size_t index = otherwise;
  if (const json* given = given_.Find(key); given != nullptr) {
    const auto found = std::find(names.begin(), names.end(), *given);
    if (found != names.end()) {
      index = static_cast<size_t>(found - names.begin());
    } else {
      std::string expected = absl::StrCat("\"", absl::StrJoin(names, "\" or \""), "\"");
      if (given->is_string()) {
        const std::string nearest = NearestName(given->get<std::string>(), names);
        if (!nearest.empty()) absl::StrAppend(&expected, "; did you mean \"", nearest, "\"?");
      }
      given_.AddWrong(key, *given, expected);
    }
  }
  Resolve(key, names[index],
          absl::StrCat("`", key, "` (", names[otherwise], "; ", absl::StrJoin(names, ", "), ")"));
  return index;
}

JsonNode KerasOptions::operator[](const std::string& key) {
  given_.Ignore(key.c_str());
  return config_[key];
}

absl::Status KerasOptions::Finish() {
  if (given_.errors()->empty()) RejectUnknown();
  return given_.errors()->ToStatus();
}

double KerasOptions::RequiredNumber(const char* key, NumberRange range) {
  double value = range.max;
  if (given_.Require(key, absl::StrCat("a number, ", RangeText(range)).c_str()) != nullptr) {
    given_.ReadNumber(key, range, &value);
  }
  Resolve(key, value, Described(key, kRequired, range));
  return value;
}

int64_t KerasOptions::RequiredInteger(const char* key, IntegerRange range) {
  int64_t value = range.min;
  if (given_.Require(key, absl::StrCat("an ", RangeText(range)).c_str()) != nullptr) {
    given_.ReadInteger(key, range, &value);
  }
  Resolve(key, value, Described(key, kRequired, range));
  return value;
}

}  // namespace shoal
