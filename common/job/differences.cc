#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/job/job.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

// A user reads no more lines. A job with more differences is another job.
constexpr size_t kMaxLines = 30;

// No batch and no update depends on these fields. The values that a run began with are in its
// checkpoints.
constexpr const char* kMayChange[] = {"epochs",    "steps",      "stop_after_nan_steps",
                                      "callbacks", "checkpoint", "initial_weights"};

// `there` and `now` are null if the value is absent.
void Compare(const json* there, const json* now, const std::string& path,
             std::vector<std::string>* out) {
  if (there != nullptr && now != nullptr) {
    if (*there == *now) return;
    if (there->is_object() && now->is_object()) {
      for (const auto& [key, value] : there->items()) {
        const auto found = now->find(key);
        Compare(&value, found == now->end() ? nullptr : &*found, JsonPath(path, key), out);
      }
      for (const auto& [key, value] : now->items()) {
        if (!there->contains(key)) Compare(nullptr, &value, JsonPath(path, key), out);
      }
      return;
    }
    if (there->is_array() && now->is_array()) {
      for (size_t i = 0; i < std::max(there->size(), now->size()); ++i) {
        Compare(i < there->size() ? &(*there)[i] : nullptr, i < now->size() ? &(*now)[i] : nullptr,
                JsonPath(path, i), out);
      }
      return;
    }
  }
  out->push_back(absl::StrCat(path, ": ", there == nullptr ? "absent" : ShortJson(*there),
                              " there, ", now == nullptr ? "absent" : ShortJson(*now), " now"));
}

// Ignores columns of the test set that only one job names. No update depends on them. A run that
// took them by place needs their names once the training set has other columns.
void ForgetTestColumnsOfOne(json* there, json* now) {
  const json::json_pointer path("/data/test/features");
  if (there->contains(path) == now->contains(path)) return;
  json& test = (there->contains(path) ? there : now)->at(path.parent_pointer());
  const auto format = test.find("format");
  if (format != test.end() && *format == "csv") test.erase("features");
}

// Ignores class names that only one job has, if they are sorted. `shoal train` writes the folders'
// names in sorted order, which is also the order of the numbers without names. Any other order
// changes the numbers.
void ForgetClassesOfOne(json* there, json* now) {
  const json::json_pointer path("/data/training/class_names");
  if (there->contains(path) == now->contains(path)) return;
  json* const names_them = there->contains(path) ? there : now;
  const json& names = names_them->at(path);
  if (std::is_sorted(names.begin(), names.end()))
    names_them->at(path.parent_pointer()).erase(path.back());
}

}  // namespace

std::vector<std::string> DescribeDifferences(const std::string& there, const std::string& now) {
  // A text that this version rejects as a job, for example a part of one, is compared as it is.
  const absl::StatusOr<Job> job_there = ParseResolvedJob(there, "there");
  absl::StatusOr<json> parsed_there =
      ParseJson(job_there.ok() ? job_there->ResolvedText() : there, "there");
  absl::StatusOr<json> parsed_now = ParseJson(now, "now");
  std::vector<std::string> lines;
  for (auto* parsed : {&parsed_there, &parsed_now}) {
    if (!parsed->ok()) {
      lines.emplace_back(parsed->status().message());
    } else if ((*parsed)->is_object()) {
      for (const char* name : kMayChange) (*parsed)->erase(name);
    }
  }
  if (!lines.empty()) return lines;
  ForgetTestColumnsOfOne(&*parsed_there, &*parsed_now);
  ForgetClassesOfOne(&*parsed_there, &*parsed_now);
  Compare(&*parsed_there, &*parsed_now, "$", &lines);
  if (lines.size() > kMaxLines) {
    const size_t more = lines.size() - kMaxLines;
    lines.resize(kMaxLines);
    lines.push_back(absl::StrCat("and ", more, " more differences"));
  }
  return lines;
}

}  // namespace shoal
