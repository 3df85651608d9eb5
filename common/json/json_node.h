#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/json/json_object.h"

namespace shoal {

// A place in a JSON document that Keras wrote, and its path. Every error begins with the path:
// "$.config.layers[3].name". An absent place is a null node with a path. Typed reads return
// `absent`, if it is given, for null. Cheap to copy; the document must outlive it. Thread-safe.
class JsonNode {
 public:
  explicit JsonNode(const nlohmann::json& root);
  // `value` is at `path`; null if it is absent.
  JsonNode(const nlohmann::json* value, std::string path) : value_(value), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  // Returns null if it is absent.
  const nlohmann::json* value() const { return value_; }
  bool is_null() const;
  bool is_array() const;
  bool is_object() const;
  bool is_string() const;

  // A member of an object; null if it is missing or this is not an object.
  JsonNode operator[](const std::string& key) const;
  // An element of an array, index < size().
  JsonNode at(size_t index) const;
  size_t size() const;
  std::vector<std::string> keys() const;

  absl::StatusOr<int64_t> Integer(IntegerRange range, std::optional<int64_t> absent = {}) const;
  absl::StatusOr<double> Number(std::optional<double> absent = {}) const;
  absl::StatusOr<bool> Bool(std::optional<bool> absent = {}) const;
  absl::StatusOr<std::string> String(std::optional<std::string> absent = {}) const;
  // One integer for both axes, or a list of two.
  absl::StatusOr<std::array<int64_t, 2>> Pair(
      IntegerRange range, std::optional<std::array<int64_t, 2>> absent = {}) const;
  absl::Status ExpectObject() const;
  absl::Status ExpectArray() const;
  // Returns kUnimplemented for a user-defined class or function (common/json/keras_class.h),
  // kInvalidArgument for a field of a wrong type, else OK.
  absl::Status ExpectKerasOwn() const;

  // The value as JSON, cut short, for messages; "nothing" if it is absent.
  std::string Text() const;
  // kInvalidArgument and kUnimplemented, with the path before the message.
  absl::Status Invalid(const std::string& message) const;
  absl::Status Unimplemented(const std::string& message) const;

 private:
  // "needs a whole number, got ..."
  absl::Status WrongType(const std::string& needed) const;

  const nlohmann::json* value_;  // null if it is absent; the document outlives this
  std::string path_;
  // If this is an absent member: the object that lacks it, and its key.
  const nlohmann::json* owner_ = nullptr;
  std::string key_;
};

}  // namespace shoal
