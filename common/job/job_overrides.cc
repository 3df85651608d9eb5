#include "common/job/job_overrides.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/text/printable.h"
#include "common/base/text/utf8.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

// Returns the key of the name, for fields that also accept a plain name; else null.
const char* KeyOfName(const std::string& path) {
  if (path == "$.optimizer" || path == "$.loss") return "class_name";
  return path == "$.strategy" ? "name" : nullptr;
}

// A value that is not JSON is a string, unless it looks like broken JSON. Such a path must be
// quoted.
absl::StatusOr<json> ValueOf(const JobOverride& given) {
  absl::StatusOr<json> value = ParseJson(given.value, given.flag);
  const bool in_brackets = given.value.starts_with('[') && given.value.ends_with(']');
  if (value.ok() || given.value.starts_with('{') || in_brackets) return value;
  return json(given.value);
}

class Overrides {
 public:
  Overrides(json* root, JsonErrors* errors) : root_(root), errors_(errors) {}

  // Returns the line about it; empty after an error.
  std::string Apply(const JobOverride& given) {
    for (const std::string* text : {&given.field, &given.value}) {
      if (IsUtf8(*text)) continue;
      errors_->NameSource(PathOfOverride(given), given.flag);
      errors_->Add(PathOfOverride(given),
                   absl::StrCat("\"", Printable(*text, kMaxReasonBytes),
                                "\" is not UTF-8, as a job must be; give another name or path"));
      return "";
    }
    absl::StatusOr<json> value = ValueOf(given);
    if (!value.ok()) {
      errors_->NameSource(PathOfOverride(given), given.flag);
      errors_->Add(PathOfOverride(given),
                   absl::StrCat(absl::StripPrefix(value.status().message(), given.flag + ": "),
                                "; to give it as a string, quote it: '", given.field, "=\"...\"'"));
      return "";
    }
    const std::vector<std::string> keys = absl::StrSplit(given.field, '.');
    json* place = root_;
    std::string path("$");
    std::string topmost;  // topmost changed path
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string above = path;
      path = JsonPath(above, keys[i]);
      if (!place->is_object()) {
        errors_->NameSource(path, given.flag);
        errors_->Add(
            path, absl::StrCat(above, " is ", ShortJsonAndType(*place), ", which has no fields"));
        return "";
      }
      const bool last = i + 1 == keys.size();
      if (topmost.empty() && (last || !place->contains(keys[i]))) topmost = path;
      place = &(*place)[keys[i]];
      if (!last) MakeObject(path, place);
    }
    errors_->NameSource(topmost, given.flag);
    const auto [first, is_first] = flags_.try_emplace(path, given.flag);
    if (!is_first) {
      errors_->Add(path, absl::StrCat("is given twice, also by ", first->second));
      return "";
    }
    const std::string before = place->is_null() ? "; absent from the file"
                               : *place == *value
                                   ? ", as in the file"
                                   : absl::StrCat("; ", ShortJson(*place), " in the file");
    *place = *std::move(value);
    return absl::StrCat(given.flag, ": ", path, " is ", ShortJson(*place), before);
  }

  // Rejects two flags for alternative fields; reports only the second.
  void RejectBoth(const char* one, const char* other) {
    const auto first = flags_.find(JsonPath("$", one));
    if (first == flags_.end() || !flags_.contains(JsonPath("$", other))) return;
    errors_->Add(JsonPath("$", other), absl::StrCat("is given, and ", first->first, " by ",
                                                    first->second, "; give one of the two"));
    root_->erase(one);
  }
  // Removes `field` if the flag gives its alternative `by`. Returns the line about it, else "".
  std::string Replace(const char* field, const char* by) {
    if (!root_->is_object() || !root_->contains(field)) return "";
    if (!flags_.contains(JsonPath("$", by)) || flags_.contains(JsonPath("$", field))) return "";
    const std::string before = ShortJson((*root_)[field]);
    root_->erase(field);
    return absl::StrCat(flags_.at(JsonPath("$", by)), ": ", JsonPath("$", field), " is left out; ",
                        before, " in the file");
  }

 private:
  static void MakeObject(const std::string& path, json* place) {
    if (place->is_null()) *place = json::object();
    const char* name = KeyOfName(path);
    if (place->is_string() && name != nullptr) *place = json{{name, *place}};
  }

  json* const root_;
  JsonErrors* const errors_;
  std::map<std::string, std::string> flags_;  // by the path that they set
};

}  // namespace

std::string PathOfOverride(const JobOverride& given) {
  std::string path("$");
  for (const auto key : absl::StrSplit(given.field, '.')) path = JsonPath(path, std::string(key));
  return path;
}

std::vector<std::string> ApplyJobOverrides(const std::vector<JobOverride>& overrides, json* root,
                                           JsonErrors* errors) {
  Overrides applied(root, errors);
  std::vector<std::string> lines;
  const auto add = [&lines](std::string line) {
    if (!line.empty()) lines.push_back(std::move(line));
  };
  for (const JobOverride& each : overrides) add(applied.Apply(each));
  applied.RejectBoth("epochs", "steps");
  add(applied.Replace("steps", "epochs"));
  add(applied.Replace("epochs", "steps"));
  return lines;
}

}  // namespace shoal
