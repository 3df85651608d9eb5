#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"

namespace shoal {

// A tensor of saved weights, not read yet.
struct SavedTensor {
  std::string name;   // in its layer: "kernel"; empty: only its order there identifies it
  std::string place;  // its name in the file, for messages
  Shape shape;
  // Reads the values from index `first` on, as float32. Not thread-safe.
  std::function<absl::Status(uint64_t first, std::span<float> out)> read;
};

// Saved values of a model's variables, from any supported file.
struct SavedWeights {
  std::string path;
  std::string model_json;  // model that they were saved from; empty: unknown
  // By layer, prefixed with the nested models' names: "tower/wide". Tensors without names are in
  // the order of their layer's variables.
  std::map<std::string, std::vector<SavedTensor>> layers;
};

// Opens `path` and detects its format from the content: `.keras` of Keras 3; HDF5, of Keras 3
// (`.weights.h5`) or in Keras's old format (`.h5`); safetensors with tensors named LAYER/VARIABLE;
// or the directory of a checkpoint, which it verifies. HDF5 of Keras before 3.6 has no layer names.
// It is matched to the layers of `model_json` by class and order, as in Keras. Rejects data that it
// cannot read, by name and place.
absl::StatusOr<SavedWeights> OpenSavedWeights(const std::string& path,
                                              const std::string& model_json);

// Maps Keras's place of each layer in an HDF5 file to the layer's path: "layers/dense_1" ->
// "tower/wide". Empty if `model_json` is not a model.
std::map<std::string, std::string> KerasWeightPlaces(const std::string& model_json);

}  // namespace shoal
