#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/json/json_errors.h"
#include "common/json/json_node.h"
#include "common/json/json_object.h"

namespace shoal {

// An object of Keras's own as Keras writes it: {"class_name": "Adam", "config": {…}}, with Keras
// 3's "build_config" left aside; or the plain name, for which a function of Keras's stands too:
// {"class_name": "function", "config": "mean_squared_error"}. It is a part of a job (a loss, an
// optimizer) or of a model (a layer, an initializer).
struct KerasObject {
  std::string class_name;   // as it stands in the JSON
  std::string name_path;    // where: "$.optimizer" or "$.optimizer.class_name"
  bool plain_name = false;  // no config comes with it
  // Null: no config was given. Points into the JSON that was read.
  const nlohmann::json* config = nullptr;
  std::string config_path;  // "$.optimizer.config"
  // A person writes a job, Keras a model.
  JsonAuthor author = JsonAuthor::kPerson;
};

// Reads a part of a job: `value`, which stands at `path`. False: it is no such object, or one of
// the user's own (keras_class.h), and an error was added.
bool ReadKerasObject(const nlohmann::json& value, const std::string& path, JsonErrors* errors,
                     KerasObject* out);

// Reads a part of a model, and ignores keys besides "class_name" and "config". Null stands for
// `default_name`. kInvalidArgument: it is no such object. kUnimplemented: it is one of the user's
// own.
absl::StatusOr<KerasObject> ReadModelPart(const JsonNode& json,
                                          std::optional<std::string> default_name = {});

// Adds an error where `key` of `config` is there and not null: an option that Shoal lacks. `what`
// ends the message: "clipping of gradients".
void RejectUnlessNull(JsonObject& config, const char* key, const char* what);

// The same for a flag: neither absent nor null nor false.
void RejectUnlessFalse(JsonObject& config, const char* key, const char* what);

}  // namespace shoal
