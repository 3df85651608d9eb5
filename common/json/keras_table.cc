#include "common/json/keras_table.h"

#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/text/snake_case.h"
#include "common/json/json_text.h"

namespace shoal {

bool NamesKerasClass(const std::string& name, const char* class_name, const char* short_name) {
  const std::string bare = absl::StrReplaceAll(name, {{"_", ""}});
  if (bare.empty()) return false;
  return absl::EqualsIgnoreCase(bare, class_name) || absl::EqualsIgnoreCase(bare, short_name);
}

std::string UnknownKerasClass(const std::string& name, const char* what,
                              const std::vector<std::string>& known,
                              std::span<const ForeignName> foreign,
                              std::span<const ClassReplacement> replacements) {
  std::string suggestion = SuggestName(name, known);
  const std::string bare = absl::AsciiStrToLower(absl::StrReplaceAll(name, {{"_", ""}, {"-", ""}}));
  for (const ForeignName& other : foreign) {
    if (bare == other.elsewhere)
      suggestion = absl::StrCat("; in Keras it is \"", other.class_name, "\"");
  }
  for (const ClassReplacement& other : replacements) {
    if (NamesKerasClass(name, other.class_name, "")) suggestion = absl::StrCat("; ", other.what);
  }
  return absl::StrCat("is ", ShortJson(name), ", ", what, " that Shoal lacks", suggestion);
}

void CheckWrappedFunction(JsonObject& config, const char* class_name) {
  const nlohmann::json* fn = config.Find("fn");
  if (fn != nullptr && fn->is_object() && fn->contains("config")) fn = &(*fn)["config"];
  if (fn == nullptr || fn->is_null() || *fn == SnakeCase(class_name)) return;
  config.errors()->AddUnimplemented(
      config.PathOf("fn"),
      absl::StrCat("is ", ShortJson(*fn), ", a function of your own; Shoal has only \"",
                   SnakeCase(class_name), "\" as ", class_name));
}

std::string DocumentedNames(const char* class_name, const char* short_name) {
  std::string names = absl::StrCat("`", SnakeCase(class_name), "`");
  if (*short_name != '\0') absl::StrAppend(&names, ", `", short_name, "`");
  return names;
}

std::vector<std::string> DocumentationRows(const std::vector<KerasClassDoc>& classes,
                                           bool with_names) {
  std::map<std::string, size_t> uses;  // by option as it is described
  for (const KerasClassDoc& of_class : classes) {
    for (const std::string& option : of_class.options) ++uses[option];
  }
  std::vector<std::string> rows;
  const auto add = [&](const KerasClassDoc& of_class, const std::string& name, bool in_all) {
    std::vector<std::string> options;
    for (const std::string& option : of_class.options) {
      if ((uses[option] == classes.size()) == in_all) options.push_back(option);
    }
    if (in_all && options.empty()) return;
    std::vector<std::string> cells = {name};
    if (with_names) cells.push_back(of_class.names);
    std::string row = absl::StrCat("| ", absl::StrJoin(cells, " | "), " |");
    if (options.empty()) {
      absl::StrAppend(&row, " |");
    } else {
      absl::StrAppend(&row, " ", absl::StrJoin(options, ", "), " |");
    }
    rows.push_back(std::move(row));
  };
  add({.class_name = "", .names = "", .options = classes.front().options}, "all", true);
  for (const KerasClassDoc& of_class : classes) {
    add(of_class, absl::StrCat("`", of_class.class_name, "`"), false);
  }
  return rows;
}

}  // namespace shoal
