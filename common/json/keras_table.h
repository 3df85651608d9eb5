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

// A class of Keras that is a kind of something: Huber, a loss.
template <typename Made>
struct KerasType {
  const char* class_name;               // Keras's
  Made (*make)(KerasOptions& options);  // reads the options; "name" may be left to the table
  const char* short_name = "";          // what Keras takes too: "mse"; empty where there is none
};

// The name of a class elsewhere, in small letters without underscores: "rmse".
struct ForeignName {
  const char* elsewhere;
  const char* class_name;
};

// A class of Keras that a table lacks, and what there is instead: "give the optimizer a schedule".
struct ClassReplacement {
  const char* class_name;
  const char* what;
};

// Whether Keras takes `name` for a class: "MeanSquaredError", "mean_squared_error", "mse", "MSE".
bool NamesKerasClass(const std::string& name, const char* class_name, const char* short_name);

// "is "rmse", a metric that Shoal lacks; in Keras it is …", or what there is instead, or the
// nearest of `known`.
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

// Adds an error where "fn", the function that a class of Keras wraps and that some versions write,
// is another than that of the class: then the class is one of the user's own.
void CheckWrappedFunction(JsonObject& config, const char* class_name);

// "`mean_squared_error`, `mse`"
std::string DocumentedNames(const char* class_name, const char* short_name);

// The rows of a table of them. Options that all have alike come in a first row, "all".
std::vector<std::string> DocumentationRows(const std::vector<KerasClassDoc>& classes,
                                           bool with_names);

// All kinds of something that Shoal has, each made from an object as Keras writes it. Immutable;
// thread-safe.
template <typename Made>
class KerasTable {
 public:
  struct Object {
    Made made;
    std::string plain_name;    // that it was given by: "mse"; empty where by a class
    const char* class_name;    // as it stands in the table
    nlohmann::json canonical;  // {"class_name", "config"} with every option; reads back as the same
  };

  // `what`, "a loss", stands in errors. The lists outlive this.
  constexpr KerasTable(const char* what, std::span<const KerasType<Made>> types,
                       std::span<const ForeignName> foreign = {},
                       std::span<const ClassReplacement> replacements = {})
      : what_(what), types_(types), foreign_(foreign), replacements_(replacements) {}

  // Reads `value`, which stands at `path`: what ReadKerasObject() takes. What is wrong is added to
  // `errors`, and what is returned then, if anything, is of no use.
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

  // Keras's names of the classes, in the order of the table.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const KerasType<Made>& type : types_) names.emplace_back(type.class_name);
    return names;
  }

  // The rows of the documentation's table, which a test compares: "| `Huber` | … |"; with the other
  // names of each class where `with_names`.
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
