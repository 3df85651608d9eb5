#include "common/json/json_node.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/nearest_name.h"
#include "common/json/json_text.h"
#include "common/json/keras_class.h"

namespace shoal {

JsonNode::JsonNode(const nlohmann::json& root) : value_(&root), path_("$") {}

bool JsonNode::is_null() const { return value_ == nullptr || value_->is_null(); }
bool JsonNode::is_array() const { return value_ != nullptr && value_->is_array(); }
bool JsonNode::is_object() const { return value_ != nullptr && value_->is_object(); }
bool JsonNode::is_string() const { return value_ != nullptr && value_->is_string(); }

JsonNode JsonNode::operator[](const std::string& key) const {
  std::string path = JsonPath(path_, key);
  if (!is_object()) return JsonNode(nullptr, std::move(path));
  const auto member = value_->find(key);
  if (member != value_->end()) return JsonNode(&*member, std::move(path));
  JsonNode absent(nullptr, std::move(path));
  absent.owner_ = value_;
  absent.key_ = key;
  return absent;
}

JsonNode JsonNode::at(size_t index) const {
  return JsonNode(&(*value_)[index], JsonPath(path_, index));
}

size_t JsonNode::size() const { return is_array() || is_object() ? value_->size() : 0; }

std::vector<std::string> JsonNode::keys() const {
  std::vector<std::string> keys;
  if (!is_object()) return keys;
  for (const auto& item : value_->items()) keys.push_back(item.key());
  return keys;
}

absl::StatusOr<int64_t> JsonNode::Integer(IntegerRange range, std::optional<int64_t> absent) const {
  if (is_null() && absent.has_value()) return *absent;
  int64_t number = 0;
  if (value_ == nullptr || !ReadKerasInteger(*value_, &number)) return WrongType("a whole number");
  if (number < range.min || number > range.max) {
    return Invalid(absl::StrCat(Text(), " is too ", number < range.min ? "small" : "large",
                                "; it must be ", range.min, " to ", range.max));
  }
  return number;
}

absl::StatusOr<double> JsonNode::Number(std::optional<double> absent) const {
  if (is_null() && absent.has_value()) return *absent;
  if (value_ == nullptr || !value_->is_number()) return WrongType("a number");
  return value_->get<double>();
}

absl::StatusOr<bool> JsonNode::Bool(std::optional<bool> absent) const {
  if (is_null() && absent.has_value()) return *absent;
  if (value_ == nullptr || !value_->is_boolean()) return WrongType("true or false");
  return value_->get<bool>();
}

absl::StatusOr<std::string> JsonNode::String(std::optional<std::string> absent) const {
  if (is_null() && absent.has_value()) return *std::move(absent);
  if (!is_string()) return WrongType("a string");
  return value_->get<std::string>();
}

absl::StatusOr<std::array<int64_t, 2>> JsonNode::Pair(
    IntegerRange range, std::optional<std::array<int64_t, 2>> absent) const {
  if (is_null() && absent.has_value()) return *absent;
  if (!is_array()) {
    if (value_ == nullptr || !value_->is_number()) {
      return WrongType("a whole number or a list of two");
    }
    SHOAL_ASSIGN_OR_RETURN(const int64_t both, Integer(range));
    return std::array<int64_t, 2>{both, both};
  }
  if (size() != 2) return WrongType("a whole number or a list of two");
  SHOAL_ASSIGN_OR_RETURN(const int64_t first, at(0).Integer(range));
  SHOAL_ASSIGN_OR_RETURN(const int64_t second, at(1).Integer(range));
  return std::array<int64_t, 2>{first, second};
}

absl::Status JsonNode::ExpectObject() const {
  return is_object() ? absl::OkStatus() : WrongType("an object {...}");
}

absl::Status JsonNode::ExpectArray() const {
  return is_array() ? absl::OkStatus() : WrongType("a list [...]");
}

absl::Status JsonNode::ExpectKerasOwn() const {
  if (!is_object()) return absl::OkStatus();
  JsonErrors errors("");
  CheckKerasOwn(*value_, path_, KerasFunctions::kByName, &errors);
  return errors.ToStatus();
}

std::string JsonNode::Text() const { return value_ == nullptr ? "nothing" : ShortJson(*value_); }

absl::Status JsonNode::Invalid(const std::string& message) const {
  return absl::InvalidArgumentError(absl::StrCat(path_, ": ", message));
}

absl::Status JsonNode::Unimplemented(const std::string& message) const {
  return absl::UnimplementedError(absl::StrCat(path_, ": ", message));
}

absl::Status JsonNode::WrongType(const std::string& needed) const {
  if (value_ != nullptr) return Invalid(absl::StrCat("needs ", needed, ", got ", Text()));
  std::vector<std::string> there;
  if (owner_ != nullptr) {
    for (const auto& item : owner_->items()) there.push_back(item.key());
  }
  const std::string nearest = NearestName(key_, there);
  const std::string hint =
      nearest.empty() ? ""
                      : absl::StrCat("; there is \"", nearest, "\", did you mean \"", key_, "\"?");
  return Invalid(absl::StrCat("is missing, needs ", needed, hint));
}

}  // namespace shoal
