#include "common/json/keras_object.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/text/nearest_name.h"
#include "common/json/json_text.h"
#include "common/json/keras_class.h"

namespace shoal {

using nlohmann::json;

namespace {

bool TakePlainName(const json& name, KerasObject* out) {
  out->class_name = name.get<std::string>();
  out->plain_name = true;
  return true;
}

}  // namespace

bool ReadKerasObject(const json& value, const std::string& path, JsonErrors* errors,
                     KerasObject* out) {
  *out = KerasObject{};
  out->name_path = path;
  out->config_path = path;
  if (value.is_string()) return TakePlainName(value, out);
  if (!value.is_object()) {
    errors->Add(path,
                absl::StrCat("is ", ShortJsonAndType(value),
                             "; must be a name, or an object with \"class_name\" and \"config\""));
    return false;
  }
  JsonObject object(value, path, errors);
  const json* class_name = object.Require("class_name", "the name of a Keras class");
  out->config = object.Find("config");
  const std::vector<std::string> known = {"class_name", "config", "module", "registered_name",
                                          "build_config"};
  for (size_t i = 2; i < known.size(); ++i) object.Ignore(known[i].c_str());
  for (const auto& [key, option] : value.items()) {
    // A key close to a known one is a typing error. RejectUnknownKeys() suggests the right key.
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (!NearestName(key, known).empty()) continue;
    errors->Add(object.PathOf(key), absl::StrCat("is not inside \"config\"; expected ",
                                                 JsonPath(object.PathOf("config"), key)));
    object.Ignore(key.c_str());
  }
  object.RejectUnknownKeys();
  out->name_path = object.PathOf("class_name");
  out->config_path = object.PathOf("config");
  if (class_name == nullptr) return false;
  if (!class_name->is_string()) {
    object.AddWrong("class_name", *class_name, "a string");
    return false;
  }
  if (!CheckKerasOwn(value, path, KerasFunctions::kAsObjects, errors)) return false;
  if (*class_name == "function") {
    if (object.Require("config", "the name of the function") == nullptr) return false;
    out->name_path = out->config_path;
    if (out->config->is_string()) return TakePlainName(*std::exchange(out->config, nullptr), out);
    object.AddWrong("config", *out->config, "the name of the function");
    return false;
  }
  out->class_name = class_name->get<std::string>();
  if (out->config != nullptr && out->config->is_null()) out->config = nullptr;
  return true;
}

absl::StatusOr<KerasObject> ReadModelPart(const JsonNode& json,
                                          std::optional<std::string> default_name) {
  SHOAL_RETURN_IF_ERROR(json.ExpectKerasOwn());
  const JsonNode name = json.is_object() ? json["class_name"] : json;
  const JsonNode config = json["config"];
  KerasObject object = {.class_name = "",
                        .name_path = name.path(),
                        .plain_name = !json.is_object(),
                        .config = config.is_null() ? nullptr : config.value(),
                        .config_path = config.path(),
                        .author = JsonAuthor::kKeras};
  SHOAL_ASSIGN_OR_RETURN(object.class_name, name.String(std::move(default_name)));
  return object;
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
