#include "common/saved_model/model_file.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/archive/hdf5_layout.h"
#include "common/archive/keras_archive.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_reader.h"
#include "common/checkpoint/safetensors.h"
#include "common/files/durable_file.h"
#include "common/files/output_file.h"
#include "common/json/json_text.h"
#include "common/model/keras_model.h"
#include "common/saved_model/saved_weights.h"

namespace shoal {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;

// Writes a new file: `header`, then the values of tensors, each at its place.
struct Place {
  std::string variable;
  Shape shape;
  uint64_t begin = 0;
};
absl::Status WriteValues(const CheckpointReader& reader, const std::string& slot,
                         const std::string& header, uint64_t file_size,
                         const std::vector<Place>& places, const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         RealFileSystem()->Open(path, FileSystem::Mode::kCreate));
  SHOAL_RETURN_IF_ERROR(file->Allocate(file_size));
  SHOAL_RETURN_IF_ERROR(file->WriteAt(0, header.data(), header.size()));
  std::vector<char> piece(kPieceBytes);
  for (const Place& place : places) {
    const std::string of_slot = absl::StrCat(slot, "/", place.variable);
    const std::string& source = !slot.empty() && reader.Has(of_slot) ? of_slot : place.variable;
    const uint64_t size = static_cast<uint64_t>(ElementCount(place.shape)) * sizeof(float);
    for (uint64_t done = 0; done < size;) {
      const uint64_t count = std::min(kPieceBytes, size - done);
      SHOAL_RETURN_IF_ERROR(reader.Read(source, place.shape, done, piece.data(), count));
      SHOAL_RETURN_IF_ERROR(file->WriteAt(place.begin + done, piece.data(), count));
      done += count;
    }
  }
  return file->Sync();
}

absl::Status WriteSafetensors(const CheckpointReader& reader, const std::string& slot,
                              const std::string& path) {
  std::vector<std::pair<std::string, Shape>> tensors;
  for (const TensorEntry& entry : reader.variables()) tensors.emplace_back(entry.name, entry.shape);
  const Manifest& manifest = reader.manifest();
  const SafetensorsLayout layout = LayOutSafetensors(
      tensors, {{"job", manifest.job_name}, {"steps", absl::StrCat(manifest.cut_step)}});
  std::vector<Place> places;
  for (const TensorEntry& entry : layout.tensors)
    places.push_back({entry.name, entry.shape, entry.begin});
  return WriteValues(reader, slot, layout.header, layout.file_size, places, path);
}

// The paths at which Keras looks for each variable: its layer's place and its number in the layer.
absl::StatusOr<std::vector<std::pair<std::string, Shape>>> KerasDatasets(
    const std::string& model_json) {
  SHOAL_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(model_json, kModelName));
  if (!json.contains("module")) {
    return absl::UnimplementedError(
        "the model's JSON is Keras 2's, which no Keras 3 opens; train with what to_json() of Keras "
        "3 returns of the model");
  }
  SHOAL_ASSIGN_OR_RETURN(const KerasModel model, ParseKerasModel(model_json));
  std::map<std::string, std::string> place_of;  // by the layer's path
  for (const auto& [place, layer] : KerasWeightPlaces(model_json)) place_of[layer] = place;
  std::map<std::string, int> counts;
  std::vector<std::pair<std::string, Shape>> datasets;
  for (const Variable& variable : model.graph.variables()) {
    const std::string layer = variable.name.substr(0, variable.name.rfind('/'));
    const auto place = place_of.find(layer);
    if (place == place_of.end())
      return absl::InternalError(absl::StrCat("the model has no layer of ", variable.name));
    datasets.emplace_back(absl::StrCat(place->second, "/vars/", counts[layer]++), variable.shape);
  }
  return datasets;
}

// Removes the compile config, which does not describe the training by Shoal. With it, Keras would
// also look for an optimizer's state.
absl::StatusOr<std::string> WithoutCompileConfig(const std::string& model_json) {
  SHOAL_ASSIGN_OR_RETURN(nlohmann::json json, ParseJson(model_json, kModelName));
  return json.erase("compile_config") > 0 ? json.dump() : model_json;
}

absl::Status WriteKeras(const CheckpointReader& reader, const std::string& slot,
                        const std::string& model_json, const OutputFile& output) {
  SHOAL_ASSIGN_OR_RETURN(const auto datasets, KerasDatasets(model_json));
  const Hdf5Layout layout = LayOutHdf5(datasets);
  const std::vector<TensorEntry>& variables = reader.variables();
  if (variables.size() != datasets.size()) {
    return absl::DataLossError(absl::StrCat("the checkpoint has ", variables.size(),
                                            " variables, and its model ", datasets.size()));
  }
  std::vector<Place> places;
  for (size_t i = 0; i < variables.size(); ++i)
    places.push_back({variables[i].name, datasets[i].second, layout.begins[i]});
  const std::string weights = output.partial_directory() + "/model.weights.h5";
  SHOAL_RETURN_IF_ERROR(
      WriteValues(reader, slot, layout.header, layout.file_size, places, weights));
  SHOAL_ASSIGN_OR_RETURN(const std::string config, WithoutCompileConfig(model_json));
  return WriteKerasArchive(output.partial(), config, weights);
}

}  // namespace

absl::Status WriteModelFile(const StoredCheckpoint& checkpoint, const ModelFile& file) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> output,
                         OutputFile::Create(file.path, file.replace));
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                         CheckpointReader::Open(checkpoint.directory));
  if (file.format == ModelFormat::kSafetensors) {
    SHOAL_RETURN_IF_ERROR(WriteSafetensors(*reader, file.slot, output->partial()));
  } else {
    SHOAL_ASSIGN_OR_RETURN(
        const std::string model_json,
        ReadSmallFile(absl::StrCat(checkpoint.directory, "/", kModelName), kMaxJsonBytes));
    SHOAL_RETURN_IF_ERROR(WriteKeras(*reader, file.slot, model_json, *output));
  }
  return output->Finish();
}

}  // namespace shoal
