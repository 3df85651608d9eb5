#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/json/json_errors.h"

namespace shoal {

// The form in which Keras writes functions.
enum class KerasFunctions {
  kByName,     // "tanh", an activation: an object is a user-defined function
  kAsObjects,  // a loss or metric: a user-defined function has the same form
};

// Returns whether an object, which Keras or a person wrote, is one of Keras's classes or functions.
// A user-defined class may have the same name and compute something else. Keras 2 and 3 write:
//
//   "module"                        "registered_name"  the class
//   "keras.layers"                  null               a public class of Keras
//   "keras.src.models.functional"   "Functional"       another class of Keras; same as "class_name"
//   absent                          absent             a class of Keras: older files, and people
//   null                            "Dense"            user-defined, in the program that was run
//   "mine.layers"                   "Dense"            user-defined, in a module
//   any                             "mine>Dense"       user-defined, registered
//   "builtins"                      "function"         a function: "config" is its name
//
// `object` is at `path`. Returns false and adds an error if it is user-defined or a field has a
// wrong type. The caller checks a missing or wrong class name. Thread-safe.
bool CheckKerasOwn(const nlohmann::json& object, const std::string& path, KerasFunctions functions,
                   JsonErrors* errors);

}  // namespace shoal
