#include "common/job/data_source_reader.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/job_path.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr NumberRange kSplit = {.min = 0, .max = 1, .below_max = true};
constexpr IntegerRange kSeed = {0, INT64_MAX};

// Fields that formats share. Those that every format has are in none of the groups.
enum FieldGroup : unsigned {
  kArrayFiles = 1 << 0,  // images or features, and labels: files
};

// A format by its name, with what its files are read by. worker/input/data_formats.cc has the other
// half of this table: what opens them.
struct Format {
  const char* name;
  unsigned groups;
};
constexpr Format kFormats[] = {
    {"arrays", kArrayFiles},
};

class DataSourceReader {
 public:
  DataSourceReader(JsonObject* object, const JobReadOptions& options)
      : object_(*object), options_(options) {}

  DataSource Read() {
    const Format* format = ReadFormat();
    if (format == nullptr) return std::move(source_);
    if (format->groups & kArrayFiles) ReadArrayFiles();
    ReadSubset();
    source_.cache = ReadWord("cache", {"memory", "disk"}, "");
    object_.RejectUnknownKeys();
    return std::move(source_);
  }

 private:
  const Format* ReadFormat() {
    std::vector<std::string> names;
    for (const Format& format : kFormats) names.push_back(format.name);
    source_.format = ReadWord("format", names, source_.format);
    const auto found =
        std::find_if(std::begin(kFormats), std::end(kFormats),
                     [this](const Format& format) { return source_.format == format.name; });
    return found == std::end(kFormats) ? nullptr : found;
  }

  // One of `words`; `absent` where the field is.
  std::string ReadWord(const char* key, const std::vector<std::string>& words,
                       const std::string& absent) {
    const json* value = object_.Find(key);
    if (value == nullptr) return absent;
    const std::string word = value->is_string() ? value->get<std::string>() : "";
    if (std::find(words.begin(), words.end(), word) != words.end()) return word;
    object_.errors()->Add(object_.PathOf(key),
                          absl::StrCat("is ", ShortJson(*value), ", which Shoal does not know",
                                       SuggestName(word, words)));
    return "";
  }

  void ReadArrayFiles() {
    const bool has_images = object_.Find("images") != nullptr;
    if (const json* features = object_.Find("features")) {
      ReadFeatureFiles(*features);
      if (has_images) {
        object_.errors()->Add(
            object_.PathOf("images"),
            absl::StrCat("is there beside ", object_.PathOf("features"), "; give one of the two"));
      }
    } else if (const json* images = object_.Require("images", "the file of examples")) {
      source_.images = ReadFile(object_, "images", *images);
    }
    if (const json* labels = object_.Require("labels", "the file of their labels")) {
      source_.labels = ReadFile(object_, "labels", *labels);
    }
  }

  void ReadFeatureFiles(const json& value) {
    if (!value.is_object() || value.empty()) {
      return object_.AddWrong("features", value,
                              "an object with the file of each input, by the input's name");
    }
    JsonObject features(value, object_.PathOf("features"), object_.errors());
    for (const auto& [input, file] : value.items()) {
      source_.features.push_back({input, {ReadFile(features, input.c_str(), file)}});
    }
  }

  std::string ReadFile(JsonObject& object, const char* key, const json& value) {
    const std::string path = ReadJobPath(object, key, value, options_.base_dir);
    if (!options_.check_data || path.empty()) return path;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) {
      object_.errors()->Add(object.PathOf(key),
                            absl::StrCat(path, ": ", error ? error.message() : "is missing"));
    } else if (!fs::is_regular_file(status)) {
      object_.errors()->Add(object.PathOf(key), absl::StrCat(path, ": is not a regular file"));
    }
    return path;
  }

  void ReadSubset() {
    object_.ReadNumber("validation_split", kSplit, &source_.validation_split);
    object_.ReadNumber("test_split", kSplit, &source_.test_split);
    source_.subset = ReadWord("subset", {"training", "validation", "test"}, "");
    object_.ReadInteger("seed", kSeed, &source_.seed);
    const bool split = source_.validation_split > 0 || source_.test_split > 0;
    if (source_.validation_split + source_.test_split >= 1) {
      object_.AddWrong("test_split", source_.test_split,
                       absl::StrCat("less than 1 together with \"validation_split\", which is ",
                                    source_.validation_split));
    }
    if (split && object_.Find("subset") == nullptr) {
      object_.errors()->Add(object_.PathOf("subset"),
                            "is missing: which part of the data this is, \"training\", "
                            "\"validation\" or \"test\"");
    } else if (!split && !source_.subset.empty()) {
      object_.errors()->Add(object_.PathOf("subset"),
                            "is there, but neither \"validation_split\" nor \"test_split\" says "
                            "how large it is");
    }
  }

  JsonObject& object_;
  const JobReadOptions& options_;
  DataSource source_;
};

}  // namespace

DataSource ReadDataSource(const json& value, const std::string& path, const JobReadOptions& options,
                          JsonErrors* errors) {
  JsonObject object(value, path, errors);
  return DataSourceReader(&object, options).Read();
}

json DataSourceToJson(const DataSource& source) {
  const DataSource defaults;
  json root = json::object();
  const auto write = [&root](const char* key, const auto& value, const auto& fallback) {
    if (value != fallback) root[key] = value;
  };
  write("format", source.format, defaults.format);
  write("images", source.images, defaults.images);
  write("labels", source.labels, defaults.labels);
  for (const DataSource::Feature& feature : source.features) {
    root["features"][feature.input] = feature.from[0];
  }
  write("validation_split", source.validation_split, defaults.validation_split);
  write("test_split", source.test_split, defaults.test_split);
  write("subset", source.subset, defaults.subset);
  write("seed", source.seed, defaults.seed);
  write("cache", source.cache, defaults.cache);
  return root;
}

}  // namespace shoal
