#include "common/json/keras_class.h"

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/json/json_text.h"

namespace shoal {

using nlohmann::json;

namespace {

// Returns null if `object` lacks `key`.
const json& Field(const json& object, const char* key) {
  static const json kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

bool IsKerasModule(const std::string& module) {
  if (module == "keras") return true;
  // Keras 2 is a part of TensorFlow, or the package tf_keras.
  for (const char* package : {"keras.", "tf_keras.", "tensorflow."}) {
    if (absl::StartsWith(module, package)) return true;
  }
  return false;
}

// Returns whether it is a registered name: "package>name".
bool IsRegistered(const json& name) {
  return name.is_string() && absl::StrContains(name.get<std::string>(), ">");
}

// Returns the field that shows a user-defined class; null if none does.
const char* FindOwnClass(const json& object) {
  const json& module = Field(object, "module");
  const json& registered = Field(object, "registered_name");
  if (IsRegistered(registered)) return "registered_name";
  if (module.is_string() && !IsKerasModule(module.get<std::string>())) return "module";
  // Keras does not register its own classes, and repeats the class name where a name is required.
  const bool named = module.is_string() && registered == object["class_name"];
  return registered.is_null() || named ? nullptr : "registered_name";
}

// The same for a function.
const char* FindOwnFunction(const json& object, KerasFunctions functions) {
  const json& module = Field(object, "module");
  if (IsRegistered(Field(object, "config"))) return "config";
  if (module == "builtins") return functions == KerasFunctions::kByName ? "config" : nullptr;
  if (module.is_string()) return IsKerasModule(module.get<std::string>()) ? nullptr : "module";
  return Field(object, "registered_name").is_null() ? nullptr : "registered_name";
}

}  // namespace

bool CheckKerasOwn(const json& object, const std::string& path, KerasFunctions functions,
                   JsonErrors* errors) {
  for (const char* key : {"module", "registered_name"}) {
    const json& field = Field(object, key);
    if (field.is_null() || field.is_string()) continue;
    errors->Add(JsonPath(path, key),
                absl::StrCat("is ", ShortJsonAndType(field), "; must be a string or null"));
    return false;
  }
  const json& class_name = Field(object, "class_name");
  if (!class_name.is_string()) return true;
  if (class_name == "function") {
    const char* key = FindOwnFunction(object, functions);
    if (key == nullptr) return true;
    errors->AddUnimplemented(
        JsonPath(path, key),
        absl::StrCat("is ", ShortJson(Field(object, key)), ": the function ",
                     ShortJson(Field(object, "config")),
                     " is your own; Shoal runs only Keras's. Build the model with one of those, "
                     "given by its name, and save it again"));
    return false;
  }
  const char* key = FindOwnClass(object);
  if (key == nullptr) return true;
  errors->AddUnimplemented(
      JsonPath(path, key),
      absl::StrCat("is ", ShortJson(Field(object, key)), ": the class ", ShortJson(class_name),
                   " is your own; Shoal runs only Keras's. Use one of those instead"));
  return false;
}

}  // namespace shoal
