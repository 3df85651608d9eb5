#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/json/json_errors.h"
#include "common/json/json_node.h"
#include "common/json/json_object.h"

namespace shoal {

// One of Keras's classes or functions, as Keras writes it: {"class_name": "Adam", "config": {…}},
// or only the name, also as a function object: {"class_name": "function", "config":
// "mean_squared_error"}. It is a part of a job (a loss, an optimizer) or of a model (a layer, an
// initializer). Ignores Keras 3's "build_config".
struct KerasObject {
  std::string class_name;   // as it is in the JSON
  std::string name_path;    // where: "$.optimizer" or "$.optimizer.class_name"
  bool plain_name = false;  // without a config
  // Null means no config. Points into the JSON that was read.
  const nlohmann::json* config = nullptr;
  std::string config_path;  // "$.optimizer.config"
  // A person writes a job, Keras a model.
  JsonAuthor author = JsonAuthor::kPerson;
};

// Reads a part of a job: `value`, at `path`. Returns false and adds an error if it is not such an
// object or is user-defined (keras_class.h).
bool ReadKerasObject(const nlohmann::json& value, const std::string& path, JsonErrors* errors,
                     KerasObject* out);

// Reads a part of a model. Ignores keys besides "class_name" and "config". Null means
// `default_name`. kInvalidArgument: it is not such an object. kUnimplemented: it is user-defined.
absl::StatusOr<KerasObject> ReadModelPart(const JsonNode& json,
                                          std::optional<std::string> default_name = {});

// Adds an error if `config` has a `key` that is not null: an option that Shoal lacks. `what` names
// it in the message: "clipping of gradients".
void RejectUnlessNull(JsonObject& config, const char* key, const char* what);

// The same for a flag, which may also be false.
void RejectUnlessFalse(JsonObject& config, const char* key, const char* what);

}  // namespace shoal
