#include "common/json/keras_object.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/json/json_text.h"

namespace shoal {

using nlohmann::json;

bool ReadKerasObject(const json& value, const std::string& path, JsonErrors* errors,
                     KerasObject* out) {
  *out = KerasObject{};
  out->name_path = path;
  out->config_path = path;
  if (value.is_string()) {
    out->class_name = value.get<std::string>();
    return true;
  }
  if (!value.is_object()) {
    errors->Add(path,
                absl::StrCat("is ", ShortJsonAndType(value),
                             "; must be a name, or an object with \"class_name\" and \"config\""));
    return false;
  }
  JsonObject object(value, path, errors);
  const json* class_name = object.Require("class_name", "the name of a Keras class");
  out->config = object.Find("config");
  for (const char* key : {"module", "registered_name", "build_config"}) object.Ignore(key);
  object.RejectUnknownKeys();
  out->name_path = object.PathOf("class_name");
  out->config_path = object.PathOf("config");
  if (class_name == nullptr) return false;
  if (!class_name->is_string()) {
    object.AddWrong("class_name", *class_name, "a string");
    return false;
  }
  out->class_name = class_name->get<std::string>();
  if (out->config != nullptr && out->config->is_null()) out->config = nullptr;
  return true;
}

void RejectUnlessNull(JsonObject& config, const char* key, const char* what) {
  const json* value = config.Find(key);
  if (value == nullptr || value->is_null()) return;
  config.errors()->AddUnimplemented(config.PathOf(key),
                                    absl::StrCat("is ", ShortJson(*value), "; Shoal has no ", what,
                                                 ", so this must be null or left out"));
}

void RejectUnlessFalse(JsonObject& config, const char* key, const char* what) {
  const json* value = config.Find(key);
  if (value == nullptr || value->is_null() || *value == false) return;
  config.errors()->AddUnimplemented(config.PathOf(key),
                                    absl::StrCat("is ", ShortJson(*value), "; Shoal has no ", what,
                                                 ", so this must be false or left out"));
}

}  // namespace shoal
