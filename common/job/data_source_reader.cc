#include "common/job/data_source_reader.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/missing_path.h"
#include "common/job/job_path.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr NumberRange kSplit = {.min = 0, .max = 1, .below_max = true};
constexpr IntegerRange kImageSize = {1, 16384};
constexpr IntegerRange kDataSeed = {0, INT64_MAX};

// Groups of fields that formats share. Fields of every format are in no group.
enum FieldGroup : unsigned {
  kArrayFiles = 1 << 0,    // images or features, and labels: files
  kPath = 1 << 1,          // files
  kFolder = 1 << 2,        // kPath is one folder; its folders are the classes
  kParts = 1 << 3,         // features and labels: names of items in the files
  kColumns = 1 << 4,       // the same, with several per feature, or with all
  kPictures = 1 << 5,      // how to turn a picture into an example
  kFineOrCoarse = 1 << 6,  // label_mode
  kText = 1 << 7,          // delimiter and header
};

struct Format {
  const char* name;
  unsigned groups;
};
#define DATA_FORMAT(name, functions, groups) {name, groups},
constexpr Format kFormats[] = {
#include "common/job/data_format_list.inc"
};
#undef DATA_FORMAT

class DataSourceReader {
 public:
  DataSourceReader(JsonObject* object, const JobReadOptions& options)
      : object_(*object), options_(options) {}

  DataSource Read() {
    const Format* format = ReadFormat();
    if (format == nullptr) return std::move(source_);
    if (format->groups & kArrayFiles) ReadArrayFiles();
    if (format->groups & kPath) ReadPaths((format->groups & kFolder) != 0);
    if (format->groups & (kParts | kColumns)) ReadParts((format->groups & kColumns) != 0);
    if (format->groups & kFolder) ReadClasses();
    if (format->groups & kFineOrCoarse) {
      source_.label_mode = ReadWord("label_mode", {"fine", "coarse"}, "");
    }
    if (format->groups & kPictures) ReadPictures();
    if (format->groups & kText) ReadText();
    ReadSubset();
    source_.cache = ReadWord("cache", {"memory", "disk"}, "");
    object_.RejectUnknownKeys();
    return std::move(source_);
  }

 private:
  const Format* ReadFormat() {
    source_.format = ReadWord("format", DataFormatNames(), source_.format);
    const auto found =
        std::find_if(std::begin(kFormats), std::end(kFormats),
                     [this](const Format& format) { return source_.format == format.name; });
    return found == std::end(kFormats) ? nullptr : found;
  }

  // Reads one of `words`. Returns `absent` if the field is absent.
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
        object_.errors()->Add(object_.PathOf("images"),
                              absl::StrCat("is given together with ", object_.PathOf("features"),
                                           "; give one of the two"));
      }
    } else if (const json* images = object_.Require("images", "the file of examples")) {
      source_.images = ReadFile(object_, "images", *images);
    }
    if (const json* labels = object_.Require("labels", "the file of their labels")) {
      source_.labels = ReadFile(object_, "labels", *labels);
    }
    if (const json* weights = object_.Find("weights")) {
      source_.weights = ReadFile(object_, "weights", *weights);
    }
  }

  void ReadFeatureFiles(const json& value) {
    if (!value.is_object() || value.empty()) {
      return object_.AddWrong("features", value,
                              "an object with the file of each input, by the input's name");
    }
    JsonObject features(value, object_.PathOf("features"), object_.errors());
    for (const auto& [input, file] : value.items()) {
      if (IsInputName(features, input))
        source_.features.push_back({input, {ReadFile(features, input.c_str(), file)}});
    }
  }

  // Rejects an empty name. A feature without a name means the model's only input.
  static bool IsInputName(JsonObject& features, const std::string& input) {
    if (!input.empty()) return true;
    features.errors()->Add(features.PathOf(""),
                           "is not the name of an input; give the name of a layer");
    return false;
  }

  // Does not match patterns. Opening the data does.
  void ReadPaths(bool folder) {
    const json* value = object_.Require(
        "path", folder ? "the folder that holds a folder of pictures for each class"
                       : "the file, or a list of files, in which \"*\" stands for any characters");
    if (value == nullptr) return;
    if (value->is_array() && !folder && !value->empty()) {
      for (const json& path : *value) AddPath(path, folder);
    } else {
      AddPath(*value, folder);
    }
  }

  void AddPath(const json& value, bool folder) {
    const std::string path = ReadJobPath(object_, "path", value, options_);
    if (path.empty()) return;
    source_.paths.push_back(path);
    std::error_code error;
    if (!options_.check_data || path.find_first_of("*?[") != std::string::npos) return;
    if (!fs::exists(path, error)) {
      object_.errors()->Add(object_.PathOf("path"), std::string(MissingPath(path).message()));
    } else if (fs::is_directory(path, error) != folder) {
      object_.errors()->Add(object_.PathOf("path"),
                            path + (folder ? ": is not a folder" : ": is a folder, not a file"));
    }
  }

  // With `columns`, a feature may have several columns, and without "features" all but the label
  // form the only feature.
  void ReadParts(bool columns) {
    const char* one = columns ? "the name of a column, or a list of them" : "the name of one";
    const json* features =
        columns ? object_.Find("features") : object_.Require("features", "the model's input");
    if (features != nullptr) {
      if (features->is_object() && !features->empty()) {
        JsonObject named(*features, object_.PathOf("features"), object_.errors());
        for (const auto& [input, part] : features->items()) {
          if (!IsInputName(named, input)) continue;
          source_.features.push_back({input, ReadNames(named, input.c_str(), part, columns, one)});
        }
      } else {
        source_.features.push_back({"", ReadNames(object_, "features", *features, columns, one)});
      }
    }
    if (const json* labels = object_.Require("labels", "the values to predict")) {
      source_.labels =
          ReadNames(object_, "labels", *labels, /*several=*/false, "the name of one")[0];
    }
    if (const json* weights = object_.Find("weights")) {
      source_.weights =
          ReadNames(object_, "weights", *weights, /*several=*/false, "the name of one")[0];
    }
  }

  std::vector<std::string> ReadNames(JsonObject& object, const char* key, const json& value,
                                     bool several, const char* expected) {
    std::vector<std::string> names;
    const auto add = [&names](const json& name) {
      if (name.is_string() && !name.get_ref<const std::string&>().empty()) {
        names.push_back(name.get<std::string>());
        return true;
      }
      return false;
    };
    bool right = false;
    if (several && value.is_array() && !value.empty()) {
      right = std::all_of(value.begin(), value.end(), add);
    } else {
      right = add(value);
    }
    if (!right) object.AddWrong(key, value, expected);
    if (names.empty()) names.push_back("");
    return names;
  }

  void ReadClasses() {
    source_.label_mode = ReadWord("label_mode", {"int", "categorical", "binary"}, "");
    const json* names = object_.Find("class_names");
    if (names == nullptr) return;
    const bool right = names->is_array() && !names->empty() &&
                       std::all_of(names->begin(), names->end(), [](const json& name) {
                         return name.is_string() && !name.get_ref<const std::string&>().empty();
                       });
    if (!right) return object_.AddWrong("class_names", *names, "a list of folders' names");
    source_.class_names = names->get<std::vector<std::string>>();
    if (const std::set<std::string> once(names->begin(), names->end()); once.size() < names->size())
      object_.AddWrong("class_names", *names, "names that differ");
  }

  void ReadPictures() {
    if (const json* size = object_.Find("image_size")) {
      const auto right = [](const json& extent) {
        return extent.is_number_integer() && extent >= kImageSize.min && extent <= kImageSize.max;
      };
      if (size->is_array() && size->size() == 2 && right((*size)[0]) && right((*size)[1])) {
        source_.image_height = (*size)[0].get<int64_t>();
        source_.image_width = (*size)[1].get<int64_t>();
      } else {
        object_.AddWrong(
            "image_size", *size,
            absl::StrCat("[height, width], each from ", kImageSize.min, " to ", kImageSize.max));
      }
    }
    source_.color_mode = ReadWord("color_mode", {"grayscale", "rgb", "rgba"}, "");
    source_.interpolation =
        ReadWord("interpolation", {"bilinear", "nearest"}, source_.interpolation);
    object_.ReadBool("crop_to_aspect_ratio", &source_.crop_to_aspect_ratio);
    object_.ReadBool("reduced_decode", &source_.reduced_decode);
    source_.damaged = ReadWord("damaged", {"fail", "skip"}, source_.damaged);
  }

  void ReadText() {
    if (const json* delimiter = object_.Find("delimiter")) {
      const std::string text = delimiter->is_string() ? delimiter->get<std::string>() : "";
      if (text.size() != 1 || text == "\"" || text == "\n" || text == "\r") {
        object_.AddWrong("delimiter", *delimiter,
                         "one character, for example \",\" or \"\\t\", not a quote or a line end");
      } else {
        source_.delimiter = text;
      }
    }
    object_.ReadBool("header", &source_.header);
  }

  std::string ReadFile(JsonObject& object, const char* key, const json& value) {
    const std::string path = ReadJobPath(object, key, value, options_);
    if (!options_.check_data || path.empty()) return path;
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found) {
      object_.errors()->Add(object.PathOf(key), std::string(MissingPath(path).message()));
    } else if (!fs::status_known(status)) {
      object_.errors()->Add(object.PathOf(key), absl::StrCat(path, ": ", error.message()));
    } else if (!fs::is_regular_file(status)) {
      object_.errors()->Add(object.PathOf(key), absl::StrCat(path, ": is not a regular file"));
    }
    return path;
  }

  void ReadSubset() {
    object_.ReadNumber("validation_split", kSplit, &source_.validation_split);
    object_.ReadNumber("test_split", kSplit, &source_.test_split);
    source_.subset = ReadWord("subset", {"training", "validation", "test"}, "");
    object_.ReadInteger("seed", kDataSeed, &source_.seed);
    const bool split = source_.validation_split > 0 || source_.test_split > 0;
    if (source_.validation_split + source_.test_split >= 1) {
      object_.AddWrong("test_split", source_.test_split,
                       absl::StrCat("less than 1 together with \"validation_split\", which is ",
                                    source_.validation_split));
    }
    if (split && object_.Find("subset") == nullptr) {
      object_.errors()->Add(object_.PathOf("subset"),
                            "is missing: the part of the data, \"training\", "
                            "\"validation\" or \"test\"");
    } else if (!split && !source_.subset.empty()) {
      object_.errors()->Add(object_.PathOf("subset"),
                            "needs \"validation_split\" or \"test_split\", which set its size");
    }
  }

  JsonObject& object_;
  const JobReadOptions& options_;
  DataSource source_;
};

// Writes one name as a string, several as a list.
json AsJson(const std::vector<std::string>& names) {
  return names.size() == 1 ? json(names[0]) : json(names);
}

}  // namespace

std::vector<std::string> DataFormatNames() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

DataSource ReadDataSource(const json& value, const std::string& path, const JobReadOptions& options,
                          JsonErrors* errors) {
  JsonObject object(value, path, errors);
  if (value.is_object() && value.contains("path") && !value.contains("format")) {
    std::vector<std::string> names;
    for (const Format& format : kFormats) {
      if (format.groups & kPath) names.push_back(format.name);
    }
    errors->Add(object.PathOf("format"),
                absl::StrCat("is missing; \"path\" goes with one of ", absl::StrJoin(names, ", ")));
    return {};
  }
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
  write("weights", source.weights, defaults.weights);
  if (!source.paths.empty()) root["path"] = AsJson(source.paths);
  for (const DataSource::Feature& feature : source.features) {
    (feature.input.empty() ? root["features"] : root["features"][feature.input]) =
        AsJson(feature.from);
  }
  if (source.image_height > 0) root["image_size"] = {source.image_height, source.image_width};
  write("color_mode", source.color_mode, defaults.color_mode);
  write("interpolation", source.interpolation, defaults.interpolation);
  write("crop_to_aspect_ratio", source.crop_to_aspect_ratio, defaults.crop_to_aspect_ratio);
  write("reduced_decode", source.reduced_decode, defaults.reduced_decode);
  write("damaged", source.damaged, defaults.damaged);
  write("label_mode", source.label_mode, defaults.label_mode);
  write("class_names", source.class_names, defaults.class_names);
  write("delimiter", source.delimiter, defaults.delimiter);
  write("header", source.header, defaults.header);
  write("validation_split", source.validation_split, defaults.validation_split);
  write("test_split", source.test_split, defaults.test_split);
  write("subset", source.subset, defaults.subset);
  write("seed", source.seed, defaults.seed);
  write("cache", source.cache, defaults.cache);
  return root;
}

}  // namespace shoal
