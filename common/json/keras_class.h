#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "common/json/json_errors.h"

namespace shoal {

// How Keras writes a function of its own.
enum class KerasFunctions {
  kByName,     // "tanh", an activation: an object is a function of the user's own
  kAsObjects,  // a loss or metric; Keras writes a function of the user's own alike
};

// Whether an object that Keras or a person wrote is Keras's own. A class of the user's own can have
// the name of one of Keras's, and computes what its author wrote. Keras 2 and 3 write:
//
//   "module"                        "registered_name"  the class
//   "keras.layers"                  null               one of Keras's that is public
//   "keras.src.models.functional"   "Functional"       another of Keras's: as "class_name" says
//   absent                          absent             older files and people: the name says it all
//   null                            "Dense"            the user's own, in the file that was run
//   "mine.layers"                   "Dense"            the user's own, in a module
//   any                             "mine>Dense"       the user's own, registered
//   "builtins"                      "function"         a function: "config" is its name
//
// `object` stands at `path`. False: it is the user's own, or a field has a wrong type, and an error
// was added. A class name that is missing or no string is left to the caller. Thread-safe.
bool CheckKerasOwn(const nlohmann::json& object, const std::string& path, KerasFunctions functions,
                   JsonErrors* errors);

}  // namespace shoal
