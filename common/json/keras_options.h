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

// The options of a Keras object, asked for one by one by whoever implements its class: what an
// option is called, what it is where it is not given, what it may be. From the same calls come the
// values, with every error; the config with all options written out; and the words of the
// documentation. After an error the value returned is the default. Not thread-safe.
class KerasOptions {
 public:
  // Both must outlive this. An `object` without a config has every option at its default.
  KerasOptions(const KerasObject& object, JsonErrors* errors);
  ~KerasOptions();

  double Number(const char* key, double otherwise, NumberRange range);
  // Null where the option is null or not given.
  std::optional<double> NumberOrNull(const char* key, std::optional<double> otherwise,
                                     NumberRange range);
  uint64_t Integer(const char* key, uint64_t otherwise, IntegerRange range);
  std::optional<uint64_t> IntegerOrNull(const char* key, IntegerRange range);
  bool Flag(const char* key, bool otherwise);
  // There is no default.
  double RequiredNumber(const char* key, NumberRange range);
  uint64_t RequiredInteger(const char* key, IntegerRange range);

  // For options of other kinds: what is given, and errors about it; then what it comes to. Without
  // a description it is in no documentation that is made from this.
  JsonObject& given() { return given_; }
  void Resolve(const char* key, const nlohmann::json& value, const std::string& description);
  // An option that changes no number.
  void Ignore(const char* key) { given_.Ignore(key); }

  // Adds an error for every option that is given and was not asked for; to be called last.
  void RejectUnknown() { given_.RejectUnknownKeys(); }
  // Every option that was asked for, as a config that reads back as the same.
  const nlohmann::json& resolved() const { return *resolved_; }
  // Each option as the documentation has it, in the order asked for: "`momentum` (0; 0 to 1)".
  const std::vector<std::string>& descriptions() const { return descriptions_; }

 private:
  const std::unique_ptr<const nlohmann::json> none_;  // stands where there is no config
  JsonObject given_;
  const std::unique_ptr<nlohmann::json> resolved_;
  std::vector<std::string> descriptions_;
};

}  // namespace shoal
