#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/json/json_object.h"
#include "common/json/keras_object.h"

namespace shoal {

// Reads the options of a Keras object one by one, for the implementation of its class. Each call
// gives an option's name, default and allowed values. The same calls yield the values, all errors,
// the config with all options written out, and the documentation. After an error, the returned
// value is a placeholder. Not thread-safe.
class KerasOptions {
 public:
  // Both must outlive this. An `object` without a config has defaults for all options.
  KerasOptions(const KerasObject& object, JsonErrors* errors);
  ~KerasOptions();

  double Number(const char* key, double otherwise, NumberRange range);
  // Returns nullopt if the option is null, and `otherwise` if it is absent.
  std::optional<double> NumberOrNull(const char* key, std::optional<double> otherwise,
                                     NumberRange range);
  uint64_t Integer(const char* key, uint64_t otherwise, IntegerRange range);
  std::optional<uint64_t> IntegerOrNull(const char* key, IntegerRange range);
  bool Flag(const char* key, bool otherwise);
  // These have no default. An absent option is an error.
  double RequiredNumber(const char* key, NumberRange range);
  uint64_t RequiredInteger(const char* key, IntegerRange range);

  // For options of other types: read the option and its errors through given(), then record its
  // final value with Resolve(). An empty description keeps it out of the documentation.
  JsonObject& given() { return given_; }
  void Resolve(const char* key, const nlohmann::json& value, const std::string& description);
  // Ignores an option that changes no number.
  void Ignore(const char* key) { given_.Ignore(key); }

  // Adds an error for every given option that was not read. Call this last.
  void RejectUnknown() { given_.RejectUnknownKeys(); }
  // All options read so far, as a config that reads back as the same options.
  const nlohmann::json& resolved() const { return *resolved_; }
  // The documentation of each option, in the order of reading: "`momentum` (0; 0 to 1)".
  const std::vector<std::string>& descriptions() const { return descriptions_; }

 private:
  const std::unique_ptr<const nlohmann::json> none_;  // replaces a missing config
  JsonObject given_;
  const std::unique_ptr<nlohmann::json> resolved_;
  std::vector<std::string> descriptions_;
};

}  // namespace shoal
