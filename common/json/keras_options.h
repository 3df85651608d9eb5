#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/json/json_node.h"
#include "common/json/json_object.h"
#include "common/json/keras_object.h"

namespace shoal {

// Reads the options of a Keras object one by one, for the implementation of its class: a loss, a
// metric, an optimizer, a schedule or a callback of a job; a layer, an activation, an initializer
// or a regularizer of a model. Each call gives an option's name, default and allowed values. The
// same calls yield the values, all errors, the config with all options written out, and the
// documentation. After an error, the returned value is a placeholder. KerasObject::author decides
// how strictly null, integers and unknown options are read (JsonAuthor). Not thread-safe.
class KerasOptions {
 public:
  // The JSON of `object` and `errors` must outlive this. An `object` without a config has defaults
  // for all options.
  KerasOptions(const KerasObject& object, JsonErrors* errors);
  ~KerasOptions();

  KerasOptions(const KerasOptions&) = delete;
  KerasOptions& operator=(const KerasOptions&) = delete;

  double Number(const char* key, double otherwise, NumberRange range);
  // Returns `otherwise` if the option is absent. Returns nullopt if a person wrote null.
  std::optional<double> NumberOrNull(const char* key, std::optional<double> otherwise,
                                     NumberRange range);
  int64_t Integer(const char* key, int64_t otherwise, IntegerRange range);
  std::optional<uint64_t> IntegerOrNull(const char* key, IntegerRange range);
  bool Flag(const char* key, bool otherwise);
  // Returns the index of the option, a string, in `names`.
  size_t OneOf(const char* key, const std::vector<std::string>& names, size_t otherwise);
  // These have no default. An absent option is an error.
  double RequiredNumber(const char* key, NumberRange range);
  int64_t RequiredInteger(const char* key, IntegerRange range);

  // For options of other types: read the option and its errors through given(), then record its
  // final value with Resolve(). An empty description keeps it out of the documentation.
  JsonObject& given() { return given_; }
  // Returns the option's place in the JSON, for a list or an object. Makes the option known.
  JsonNode operator[](const std::string& key);
  // Returns the value of `read`. If it is an error, adds the error and returns `otherwise`.
  template <typename T>
  T Take(absl::StatusOr<T> read, T otherwise = T()) {
    if (read.ok()) return *std::move(read);
    given_.errors()->Add(read.status());
    return otherwise;
  }
  void Take(const absl::Status& status) {
    if (!status.ok()) given_.errors()->Add(status);
  }
  // Records the final value and the description of an option.
  void Resolve(const char* key, const nlohmann::json& value, const std::string& description);
  // Ignores an option that changes no number.
  void Ignore(const char* key) { given_.Ignore(key); }

  // Adds an error for every given option that was not read, with the name of the class and its
  // options. Call this last.
  void RejectUnknown() { given_.RejectUnknownKeys(class_name_); }
  // The same, but only if there are no errors: after an error, a reader may have left out options.
  // Returns all errors. Requires errors of this object alone.
  absl::Status Finish();

  // The place of the whole config.
  const JsonNode& config() const { return config_; }
  // The names of all options read so far, in order.
  const std::vector<std::string>& known() const { return given_.known(); }
  // All options read so far, as a config that reads back as the same options.
  const nlohmann::json& resolved() const { return *resolved_; }
  // The documentation of each option, in the order of reading: "`momentum` (0; 0 to 1)".
  const std::vector<std::string>& descriptions() const { return descriptions_; }

 private:
  const std::unique_ptr<const nlohmann::json> none_;  // replaces a missing config
  const std::string class_name_;
  JsonObject given_;
  const JsonNode config_;
  const std::unique_ptr<nlohmann::json> resolved_;
  std::vector<std::string> descriptions_;
};

}  // namespace shoal
