#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/json/json_errors.h"

namespace shoal {

// Values from `min` to `max`, inclusive.
struct IntegerRange {
  int64_t min = 0;
  int64_t max = 0;
};

// Values from `min` (excluded if `above_min`) to `max` (excluded if `below_max`).
struct NumberRange {
  double min = 0;
  double max = 0;
  bool above_min = false;
  bool below_max = false;
};

// Reads one JSON object field by field. An absent field leaves its variable unchanged. A field of a
// wrong type or out of range does too, and adds an error. Each read makes its key known.
// RejectUnknownKeys() at the end adds an error for every other key. Not thread-safe.
class JsonObject {
 public:
  // A `value` that is not an object adds an error and reads as an empty object. `value` and
  // `errors` must outlive this.
  JsonObject(const nlohmann::json& value, std::string path, JsonErrors* errors);

  // Returns null if the field is absent.
  const nlohmann::json* Find(const char* key);
  // The same, but adds an error if the field is absent. The error ends with `meaning` ("what the
  // job is called").
  const nlohmann::json* Require(const char* key, const char* meaning);

  void ReadBool(const char* key, bool* out);
  void ReadInteger(const char* key, IntegerRange range, int64_t* out);
  void ReadInteger(const char* key, IntegerRange range, uint64_t* out);
  void ReadInteger(const char* key, IntegerRange range, int* out);
  void ReadNumber(const char* key, NumberRange range, double* out);
  // Makes a key known without reading it.
  void Ignore(const char* key);

  void RejectUnknownKeys();

  // False if the value is not an object. Errors about its fields are then meaningless.
  bool valid() const { return valid_; }
  std::string PathOf(const std::string& key) const;
  JsonErrors* errors() { return errors_; }
  // Adds an error about a field: "is -3; must be …".
  void AddWrong(const char* key, const nlohmann::json& value, const std::string& expected);

 private:
  const nlohmann::json* const value_;
  const std::string path_;
  JsonErrors* const errors_;
  const bool valid_;
  std::vector<std::string> known_;
};

}  // namespace shoal
