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

// A place in a JSON document and its path, so that every error says where:
// "$.config.layers[3].name". What is absent is a null node with a path. Typed reads return
// `absent`, when given, for null. Cheap to copy; the document must outlive it. Thread-safe.
class JsonNode {
 public:
  explicit JsonNode(const nlohmann::json& root);

  const std::string& path() const { return path_; }
  bool is_null() const;
  bool is_array() const;
  bool is_object() const;
  bool is_string() const;

  // A member of an object; null where there is none, or this is no object.
  JsonNode operator[](const std::string& key) const;
  // An element of an array, index < size().
  JsonNode at(size_t index) const;
  size_t size() const;
  std::vector<std::string> keys() const;

  absl::StatusOr<int64_t> Integer(IntegerRange range, std::optional<int64_t> absent = {}) const;
  absl::StatusOr<double> Number(std::optional<double> absent = {}) const;
  absl::StatusOr<bool> Bool(std::optional<bool> absent = {}) const;
  absl::StatusOr<std::string> String(std::optional<std::string> absent = {}) const;
  // Which of `names` this string is.
  absl::StatusOr<size_t> OneOf(const std::vector<std::string>& names,
                               std::optional<size_t> absent = {}) const;
  // One integer for both axes, or a list of two.
  absl::StatusOr<std::array<int64_t, 2>> Pair(
      IntegerRange range, std::optional<std::array<int64_t, 2>> absent = {}) const;
  absl::Status ExpectObject() const;
  absl::Status ExpectArray() const;
  // OK where this is no object or one of Keras's own; kUnimplemented for a class or function of the
  // user's own (common/json/keras_class.h), whatever its name.
  absl::Status ExpectKerasOwn() const;

  // The value as JSON, cut short, for messages; "nothing" where it is absent.
  std::string Text() const;
  // kInvalidArgument and kUnimplemented, with the path before the message.
  absl::Status Invalid(const std::string& message) const;
  absl::Status Unimplemented(const std::string& message) const;

 private:
  JsonNode(const nlohmann::json* value, std::string path) : value_(value), path_(std::move(path)) {}
  // "needs a whole number, got ..."
  absl::Status WrongType(const std::string& needed) const;

  const nlohmann::json* value_;  // null where it is absent; the document outlives this
  std::string path_;
  // Of an absent member: the object it is missing in, and its key.
  const nlohmann::json* owner_ = nullptr;
  std::string key_;
};

// Reads a Keras config and remembers which options were asked for: what nobody asked for and is not
// null would change the model in a way Shoal knows nothing of, and is refused.
class ConfigReader {
 public:
  // `owner` is whose config it is, for messages: "Dense".
  ConfigReader(JsonNode config, std::string owner)
      : config_(std::move(config)), owner_(std::move(owner)) {}

  JsonNode operator[](const std::string& key);
  const JsonNode& config() const { return config_; }
  // What was asked for, in order.
  const std::vector<std::string>& read() const { return read_; }
  // kUnimplemented for an option that is set and was never asked for.
  absl::Status RefuseUnread() const;

 private:
  JsonNode config_;
  std::string owner_;
  std::vector<std::string> read_;
};

}  // namespace shoal
