#include "common/saved_model/saved_weights.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/archive/hdf5_file.h"
#include "common/archive/keras_archive.h"
#include "common/base/status_macros.h"
#include "common/base/text/snake_case.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/safetensors.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

std::string StringIn(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Keras numbers the layers of one class in the model's order: "dense", "dense_1".
void FindPlaces(const json& model, const std::string& place, const std::string& path,
                std::map<std::string, std::string>* places) {
  const json::json_pointer layers_at("/config/layers");
  if (!model.contains(layers_at) || !model[layers_at].is_array()) return;
  std::map<std::string, int> used;
  for (const json& layer : model[layers_at]) {
    if (!layer.is_object()) continue;
    const std::string class_name = StringIn(layer, "class_name");
    std::string name = StringIn(layer, "name");
    if (const auto config = layer.find("config"); name.empty() && config != layer.end())
      name = StringIn(*config, "name");
    // Keras 3 turns every model that is not of its own classes into a Functional.
    const std::string kind = SnakeCase(class_name == "Model" ? "Functional" : class_name);
    const int count = used[kind]++;
    const std::string layer_place =
        absl::StrCat(place, "layers/", kind, count > 0 ? absl::StrCat("_", count) : "");
    const std::string layer_path = absl::StrCat(path, name);
    places->emplace(layer_place, layer_path);
    FindPlaces(layer, layer_place + "/", layer_path + "/", places);
  }
}

SavedTensor TensorOf(const std::shared_ptr<Hdf5File>& file, const Hdf5File::Dataset& dataset,
                     std::string name) {
  return {.name = std::move(name),
          .place = dataset.path,
          .shape = dataset.shape,
          .read = [file, &dataset](uint64_t first, std::span<float> out) {
            return file->ReadFloats(dataset, first, out);
          }};
}

// The place of a data set in Keras 3's format: "layers/sequential/layers/dense/vars/0" is variable
// 0 of the layer at "layers/sequential/layers/dense". Other data sets (of the optimizer, of random
// numbers) have no place.
struct Place {
  std::vector<std::string> layers;  // each as a whole path: "layers/sequential"
  size_t variable = 0;
};

std::optional<Place> PlaceOf(const std::string& dataset) {
  const std::vector<std::string> parts = absl::StrSplit(dataset, '/');
  if (parts.size() < 4 || parts.size() % 2 != 0 || parts[parts.size() - 2] != "vars")
    return std::nullopt;
  Place place;
  const std::string& number = parts.back();
  const auto end = number.data() + number.size();
  if (std::from_chars(number.data(), end, place.variable).ptr != end) return std::nullopt;
  std::string at;
  for (size_t i = 0; i + 2 < parts.size(); i += 2) {
    if (parts[i] != "layers") return std::nullopt;
    absl::StrAppend(&at, i > 0 ? "/" : "", parts[i], "/", parts[i + 1]);
    place.layers.push_back(at);
  }
  return place;
}

// The path of the layer; empty if unknown.
std::string LayerPath(const Place& place, const Hdf5File& file,
                      const std::map<std::string, std::string>& places) {
  std::vector<std::string> names;
  for (const std::string& layer : place.layers) {
    const auto name = file.names().find(layer + "/vars");
    if (name == file.names().end()) break;
    names.push_back(name->second);
  }
  if (names.size() == place.layers.size()) return absl::StrJoin(names, "/");
  const auto known = places.find(place.layers.back());
  return known == places.end() ? "" : known->second;
}

void TakeKeras3(const std::shared_ptr<Hdf5File>& file, const std::string& model_json,
                SavedWeights* saved) {
  const std::map<std::string, std::string> places = KerasWeightPlaces(model_json);
  std::map<std::string, std::map<size_t, SavedTensor>> layers;
  for (const Hdf5File::Dataset& dataset : file->datasets()) {
    const std::optional<Place> place = PlaceOf(dataset.path);
    if (!place.has_value()) continue;
    std::string layer = LayerPath(*place, *file, places);
    if (layer.empty()) layer = place->layers.back();  // matches no variable
    layers[layer].emplace(place->variable, TensorOf(file, dataset, ""));
  }
  for (auto& [layer, tensors] : layers) {
    // A layer with a missing number is not from Keras. Its tensors then cannot be matched by order.
    const bool complete = tensors.rbegin()->first + 1 == tensors.size();
    for (auto& [number, tensor] : tensors) {
      if (!complete) tensor.name = tensor.place;
      saved->layers[layer].push_back(std::move(tensor));
    }
  }
}

// Reads Keras's old format: "LAYER/.../LAYER/VARIABLE", followed by ":0" in Keras 2. For a nested
// model, the inner layer's name is between the two.
void TakeOldFormat(const std::shared_ptr<Hdf5File>& file, SavedWeights* saved) {
  for (const Hdf5File::Dataset& dataset : file->datasets()) {
    std::vector<std::string> parts = absl::StrSplit(dataset.path, '/');
    if (parts[0] == "model_weights") parts.erase(parts.begin());
    if (parts.size() < 2 || parts[0] == "optimizer_weights") continue;
    const std::vector<std::string> last = absl::StrSplit(parts.back(), ':');
    const std::string layer = parts[0];
    const auto inner = std::find(parts.rbegin() + 1, parts.rend() - 1, layer);
    // If the layer's name occurs only once, the path is everything before the variable's name.
    const auto begin = inner == parts.rend() - 1 ? parts.begin() : inner.base() - 1;
    const std::string path = absl::StrJoin(begin, parts.end() - 1, "/");
    saved->layers[path].push_back(TensorOf(file, dataset, last[0]));
  }
}

absl::StatusOr<SavedWeights> OpenHdf5Weights(ByteSource source, SavedWeights saved,
                                             const std::string& model_json) {
  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<Hdf5File> file, Hdf5File::Open(std::move(source)));
  TakeKeras3(file, saved.model_json.empty() ? model_json : saved.model_json, &saved);
  if (saved.layers.empty()) TakeOldFormat(file, &saved);
  if (!saved.layers.empty()) return saved;
  return absl::InvalidArgumentError(
      absl::StrCat(file->name(),
                   ": is HDF5, but holds no weights that Keras has saved: no data set "
                   "is called layers/.../vars/0, or LAYER/LAYER/kernel"));
}

// Splits the name at the last slash: "tower/wide/kernel".
void TakeNamed(const std::string& name, SavedTensor tensor, SavedWeights* saved) {
  const size_t slash = name.rfind('/');
  if (slash == std::string::npos) return;
  tensor.name = name.substr(slash + 1);
  tensor.place = name;
  saved->layers[name.substr(0, slash)].push_back(std::move(tensor));
}

absl::StatusOr<SavedWeights> OpenSafetensorsWeights(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<SafetensorsFile> file, SafetensorsFile::Open(path));
  SavedWeights saved{.path = path};
  for (const TensorEntry& entry : file->tensors()) {
    TakeNamed(entry.name,
              {.shape = entry.shape,
               .read = [file, &entry](uint64_t first, std::span<float> out) -> absl::Status {
                 if (entry.dtype == "F32")
                   return file->Read(entry, first * sizeof(float), out.data(), out.size_bytes());
                 return absl::InvalidArgumentError(absl::StrCat(file->path(), ": ", entry.name,
                                                                " holds ", entry.dtype,
                                                                "; save it as float32 (F32)"));
               }},
              &saved);
  }
  return saved;
}

absl::StatusOr<SavedWeights> OpenCheckpointWeights(const std::string& directory) {
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<CheckpointReader> checkpoint,
                         CheckpointReader::Open(directory));
  SHOAL_RETURN_IF_ERROR(checkpoint->Verify());
  SavedWeights saved{.path = directory};
  for (const TensorEntry& entry : checkpoint->variables()) {
    TakeNamed(entry.name,
              {.shape = entry.shape,
               .read =
                   [checkpoint, &entry](uint64_t first, std::span<float> out) {
                     return checkpoint->ReadBytes(entry.name, first * sizeof(float), out.data(),
                                                  out.size_bytes());
                   }},
              &saved);
  }
  return saved;
}

}  // namespace

std::map<std::string, std::string> KerasWeightPlaces(const std::string& model_json) {
  std::map<std::string, std::string> places;
  const absl::StatusOr<json> model = ParseJson(model_json, "");
  if (model.ok() && model->is_object()) FindPlaces(*model, "", "", &places);
  return places;
}

absl::StatusOr<SavedWeights> OpenSavedWeights(const std::string& path,
                                              const std::string& model_json) {
  if (RealFileSystem()->IsDirectory(path)) {
    if (RealFileSystem()->Exists(absl::StrCat(path, "/", kManifestName)))
      return OpenCheckpointWeights(path);
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": is a directory, not a checkpoint; name one in RUN_DIR/checkpoints, or "
                     "RUN_DIR/model/model.safetensors"));
  }
  if (IsZipArchive(path)) {
    SavedWeights saved{.path = path};
    SHOAL_ASSIGN_OR_RETURN(saved.model_json, ReadArchivedModel(path));
    SHOAL_RETURN_IF_ERROR(ParseJson(saved.model_json, path + ": config.json").status());
    SHOAL_ASSIGN_OR_RETURN(ByteSource weights, OpenArchivedWeights(path));
    return OpenHdf5Weights(std::move(weights), std::move(saved), model_json);
  }
  SHOAL_ASSIGN_OR_RETURN(ByteSource file, OpenByteSource(path));
  char first[9] = {};
  SHOAL_RETURN_IF_ERROR(file.read(0, first, std::min<uint64_t>(file.size, sizeof(first))));
  if (first[0] == '\x89') return OpenHdf5Weights(std::move(file), {.path = path}, model_json);
  if (first[8] == '{') return OpenSafetensorsWeights(path);
  return absl::InvalidArgumentError(
      absl::StrCat(path,
                   ": has an unknown format; expected .keras of Keras 3, HDF5 (.weights.h5, .h5), "
                   "safetensors or the directory of a checkpoint"));
}

}  // namespace shoal
