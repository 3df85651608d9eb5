#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "common/json/json_errors.h"

namespace shoal {

// Values from `min` to `max`, both included.
struct IntegerRange {
  int64_t min = 0;
  int64_t max = 0;
};

// Values from `min` (left out when `above_min`) to `max` (left out when `below_max`).
struct NumberRange {
  double min = 0;
  double max = 0;
  bool above_min = false;
  bool below_max = false;
};

// Reads one JSON object field by field. A field that is absent leaves its variable as it is; one of
// a wrong type or out of range too, and adds an error. Which keys are known is learnt from what is
// read: RejectUnknownKeys() at the end adds an error for every other. Not thread-safe.
class JsonObject {
 public:
  // A `value` that is no object adds an error and reads as an empty one. `value` and `errors` must
  // outlive this.
  JsonObject(const nlohmann::json& value, std::string path, JsonErrors* errors);

  // Null when absent.
  const nlohmann::json* Find(const char* key);
  // The same; absence is an error, which ends with `meaning` ("what the job is called").
  const nlohmann::json* Require(const char* key, const char* meaning);

  void ReadBool(const char* key, bool* out);
  void ReadInteger(const char* key, IntegerRange range, int64_t* out);
  void ReadInteger(const char* key, IntegerRange range, uint64_t* out);
  void ReadInteger(const char* key, IntegerRange range, int* out);
  void ReadNumber(const char* key, NumberRange range, double* out);
  // A field that is known and read by nobody.
  void Ignore(const char* key);

  void RejectUnknownKeys();

  // False when the value was no object: nothing can be said of its fields.
  bool valid() const { return valid_; }
  std::string PathOf(const std::string& key) const;
  JsonErrors* errors() { return errors_; }
  // "is -3; must be …"
  void AddWrong(const char* key, const nlohmann::json& value, const std::string& expected);

 private:
  const nlohmann::json* const value_;
  const std::string path_;
  JsonErrors* const errors_;
  const bool valid_;
  std::vector<std::string> known_;
};

}  // namespace shoal
