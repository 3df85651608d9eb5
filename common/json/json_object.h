#pragma once

#include <cstdint>
#include <limits>
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

inline constexpr NumberRange kAllNumbers = {-std::numeric_limits<double>::infinity(),
                                            std::numeric_limits<double>::infinity()};
inline constexpr NumberRange kNonNegativeNumbers = {0, std::numeric_limits<double>::infinity()};

// The author of an object, which decides how strictly it is read.
enum class JsonAuthor {
  // A person. Null is a value like others, and every unknown key is an error.
  kPerson,
  // Keras, which writes all options of a class, also those without effect. Null means absent, and
  // 6.0 is an integer. An unknown key that is not null is an option that Shoal lacks.
  kKeras,
};

// Gets an integer that Keras wrote, 6 or 6.0, limited to what int64 holds. Returns false if `value`
// is no integer. Thread-safe.
bool ReadKerasInteger(const nlohmann::json& value, int64_t* out);

// Reads one JSON object field by field. An absent field leaves its variable unchanged. A field of a
// wrong type or out of range does too, and adds an error. Each read makes its key known.
// RejectUnknownKeys() at the end adds an error for every other key. Not thread-safe.
class JsonObject {
 public:
  // A `value` that is not an object adds an error and reads as an empty object. `value` and
  // `errors` must outlive this.
  JsonObject(const nlohmann::json& value, std::string path, JsonErrors* errors,
             JsonAuthor author = JsonAuthor::kPerson);

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

  // The code is kInvalidArgument for a person's object, kUnimplemented for one of Keras. Messages
  // name `class_name`, the class whose options this object has; empty: none.
  void RejectUnknownKeys(const std::string& class_name = "");

  // Returns whether the field exists, with any value. Does not make the key known.
  bool Contains(const char* key) const;
  // The known keys, in the order of the first reads.
  const std::vector<std::string>& known() const { return known_; }
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
  const JsonAuthor author_;
  std::vector<std::string> known_;
};

}  // namespace shoal
