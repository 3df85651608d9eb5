#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/json/json_errors.h"
#include "common/json/keras_object.h"
#include "common/json/keras_options.h"

namespace shoal {

// A class of Keras in a table of one kind, such as Huber in the table of losses.
template <typename Made>
struct KerasType {
  const char* class_name;               // in Keras
  Made (*make)(KerasOptions& options);  // reads the options; "name" may be left to the table
  const char* short_name = "";          // Keras's short name: "mse"; empty if there is none
};

// The name of a class elsewhere, in small letters without underscores: "rmse".
struct ForeignName {
  const char* elsewhere;
  const char* class_name;
};

// A class of Keras that a table lacks, and its replacement: "give the optimizer a schedule".
struct ClassReplacement {
  const char* class_name;
  const char* what;
};

// Returns whether `name` names the class in Keras: "MeanSquaredError", "mean_squared_error", "mse",
// "MSE".
bool NamesKerasClass(const std::string& name, const char* class_name, const char* short_name);

// Returns "is "rmse", a metric that Shoal lacks; in Keras it is …", or with the replacement, or
// with the nearest of `known`.
std::string UnknownKerasClass(const std::string& name, const char* what,
                              const std::vector<std::string>& known,
                              std::span<const ForeignName> foreign,
                              std::span<const ClassReplacement> replacements);

// A class in the documentation.
struct KerasClassDoc {
  std::string class_name;
  std::string names;  // "`mean_squared_error`, `mse`"
  std::vector<std::string> options;
};

// Adds an error if "fn" is not the function of the class. Some versions of Keras write "fn", the
// function that a class wraps. Another function means that the class is user-defined.
void CheckWrappedFunction(JsonObject& config, const char* class_name);

// "`mean_squared_error`, `mse`"
std::string DocumentedNames(const char* class_name, const char* short_name);

// Returns the rows of a table of classes. The first row, "all", has the options of all classes.
std::vector<std::string> DocumentationRows(const std::vector<KerasClassDoc>& classes,
                                           bool with_names);

// All classes of one kind, such as losses, that Shoal has. Each is made from an object as Keras
// writes it. Immutable; thread-safe.
template <typename Made>
class KerasTable {
 public:
  struct Object {
    Made made;
    std::string plain_name;    // the plain name in the job: "mse"; empty if the job names a class
    const char* class_name;    // as in the table
    nlohmann::json canonical;  // {"class_name", "config"} with every option; Read() gives the same
  };

  // Errors contain `what`, such as "a loss". The lists outlive this.
  constexpr KerasTable(const char* what, std::span<const KerasType<Made>> types,
                       std::span<const ForeignName> foreign = {},
                       std::span<const ClassReplacement> replacements = {})
      : what_(what), types_(types), foreign_(foreign), replacements_(replacements) {}

  // Reads `value` at `path`, in the forms that ReadKerasObject() accepts. Adds errors to `errors`;
  // the result is then meaningless, or nullopt.
  std::optional<Object> Read(const nlohmann::json& value, const std::string& path,
                             JsonErrors* errors) const {
    KerasObject object;
    if (!ReadKerasObject(value, path, errors, &object)) return std::nullopt;
    for (const KerasType<Made>& type : types_) {
      if (!NamesKerasClass(object.class_name, type.class_name, type.short_name)) continue;
      KerasOptions options(object, errors);
      Made made = type.make(options);
      options.Ignore("name");  // every object of Keras has one
      options.RejectUnknown();
      CheckWrappedFunction(options.given(), type.class_name);
      return Object{std::move(made),
                    object.plain_name ? object.class_name : "",
                    type.class_name,
                    {{"class_name", type.class_name}, {"config", options.resolved()}}};
    }
    errors->AddUnimplemented(object.name_path, UnknownKerasClass(object.class_name, what_, Names(),
                                                                 foreign_, replacements_));
    return std::nullopt;
  }

  // Returns Keras's names of the classes, in the order of the table.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const KerasType<Made>& type : types_) names.emplace_back(type.class_name);
    return names;
  }

  // Returns the rows of the documentation's table, which a test compares: "| `Huber` | … |". With
  // `with_names` a row has the other names of its class.
  std::vector<std::string> Docs(bool with_names) const {
    std::vector<KerasClassDoc> classes;
    for (const KerasType<Made>& type : types_) {
      JsonErrors errors("");
      KerasOptions options(KerasObject{}, &errors);
      type.make(options);
      classes.push_back({type.class_name, DocumentedNames(type.class_name, type.short_name),
                         options.descriptions()});
    }
    return DocumentationRows(classes, with_names);
  }

 private:
  const char* const what_;
  const std::span<const KerasType<Made>> types_;
  const std::span<const ForeignName> foreign_;
  const std::span<const ClassReplacement> replacements_;
};

}  // namespace shoal
