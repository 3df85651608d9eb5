#include "common/optimizer/decay_exclusions.h"

#include <re2/re2.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text/nearest_name.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr char kKey[] = "exclude_from_weight_decay";
constexpr size_t kMaxEntries = 4096;
constexpr size_t kMaxEntryBytes = 1000;
// RE2's memory limit per pattern; a pattern for a variable's name needs a few hundred bytes.
constexpr int64_t kMaxPatternBytes = 64 << 10;

std::string LastPart(const std::string& variable) {
  return variable.substr(variable.rfind('/') + 1);
}

std::string PathsText(const std::vector<std::string>& paths) {
  constexpr size_t kMax = 20;
  const size_t shown = std::min(paths.size(), kMax);
  const std::string text = absl::StrJoin(paths.begin(), paths.begin() + shown, ", ");
  return shown == paths.size() ? text : absl::StrCat(text, " and ", paths.size() - shown, " more");
}

bool IsPath(const std::string& entry) { return absl::StrContains(entry, "/"); }

}  // namespace

bool DecayExclusions::Entry::Matches(const std::string& variable) const {
  return pattern == nullptr ? variable == text
                            : re2::RE2::PartialMatch(LastPart(variable), *pattern);
}

DecayExclusions::DecayExclusions(KerasOptions& options, bool decays)
    : path_(options.given().PathOf(kKey)) {
  const json* const list = options.given().Find(kKey);
  if (list != nullptr && !list->is_null()) Read(*list, options.given());
  if (!decays) entries_.clear();
  json resolved = json::array();
  for (const Entry& entry : entries_) resolved.push_back(entry.text);
  options.Resolve(kKey, resolved,
                  absl::StrCat("`", kKey, "` ([]; patterns of names, and paths, of variables)"));
}

DecayExclusions::DecayExclusions(DecayExclusions&&) noexcept = default;
DecayExclusions::~DecayExclusions() = default;

void DecayExclusions::Read(const json& list, JsonObject& given) {
  if (!list.is_array() || list.size() > kMaxEntries) {
    return given.AddWrong(kKey, list.is_array() ? json(list.size()) : list,
                          absl::StrCat("a list of at most ", kMaxEntries,
                                       " patterns, for example [\"bias\", \"gamma\"]"));
  }
  for (size_t i = 0; i < list.size(); ++i) {
    ReadEntry(list[i], JsonPath(given.PathOf(kKey), i), given.errors());
  }
  std::sort(entries_.begin(), entries_.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
  const auto same = [](const Entry& a, const Entry& b) { return a.text == b.text; };
  entries_.erase(std::unique(entries_.begin(), entries_.end(), same), entries_.end());
}

void DecayExclusions::ReadEntry(const json& value, const std::string& path, JsonErrors* errors) {
  Entry entry{.text = value.is_string() ? value.get<std::string>() : "", .pattern = nullptr};
  if (entry.text.empty() || entry.text.size() > kMaxEntryBytes) {
    return errors->Add(
        path, absl::StrCat("is ", ShortJson(value), "; must be 1 to ", kMaxEntryBytes,
                           " bytes of a pattern (\"bias\") or of a path (\"dense/bias\")"));
  }
  if (!IsPath(entry.text)) {
    // Limits a job file's pattern in time and memory: RE2 takes linear time.
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kMaxPatternBytes);
    auto pattern = std::make_unique<const re2::RE2>(entry.text, options);
    if (!pattern->ok()) {
      return errors->Add(path,
                         absl::StrCat("is ", ShortJson(value),
                                      "; must be a regular expression as RE2 takes them, without "
                                      "look-around and back-references: ",
                                      pattern->error()));
    }
    entry.pattern = std::move(pattern);
  }
  entries_.push_back(std::move(entry));
}

bool DecayExclusions::Excludes(const std::string& variable) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.Matches(variable); });
}

absl::Status DecayExclusions::Check(const std::vector<std::string>& variables) const {
  for (const Entry& entry : entries_) {
    const auto matches = [&](const std::string& variable) { return entry.Matches(variable); };
    if (std::any_of(variables.begin(), variables.end(), matches)) continue;
    const std::string is = absl::StrCat(path_, ": has ", ShortJson(entry.text), ", which ");
    if (entry.pattern == nullptr) {
      const std::string nearest = NearestName(entry.text, variables);
      return absl::InvalidArgumentError(
          absl::StrCat(is, "is not the path of a variable; ",
                       nearest.empty() ? absl::StrCat("known: ", PathsText(variables))
                                       : absl::StrCat("did you mean \"", nearest, "\"?")));
    }
    std::set<std::string> names;
    for (const std::string& variable : variables) names.insert(LastPart(variable));
    return absl::InvalidArgumentError(absl::StrCat(
        is, "matches no variable", SuggestName(entry.text, {names.begin(), names.end()})));
  }
  return absl::OkStatus();
}

}  // namespace shoal
