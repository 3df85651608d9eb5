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
  std::string name;   // within its layer: "kernel"; empty: it is known by its place there alone
  std::string place;  // what the file calls it, for messages
  Shape shape;
  // Reads the values from number `first` on, as float32. Not thread-safe.
  std::function<absl::Status(uint64_t first, std::span<float> out)> read;
};

// What somebody saved of a model's variables, in whatever file.
struct SavedWeights {
  std::string path;
  std::string model_json;  // of what they were saved of; empty: the file does not say
  // By layer, nested models' names before it: "tower/wide". Tensors without names stand in the
  // order of their layer's variables.
  std::map<std::string, std::vector<SavedTensor>> layers;
};

// Opens `path`, told apart by its content: `.keras` of Keras 3; HDF5, of Keras 3 (`.weights.h5`) or
// in Keras's old format (`.h5`); safetensors whose tensors are called LAYER/VARIABLE; or the
// directory of a checkpoint, which is verified. HDF5 that names no layers, as Keras wrote before
// 3.6, is taken to be of the model `model_json`, whose layers are then told by class and order, as
// Keras does. What cannot be read is refused by name and place.
absl::StatusOr<SavedWeights> OpenSavedWeights(const std::string& path,
                                              const std::string& model_json);

// Where Keras has the variables of each layer of a model in an HDF5 file: "layers/dense_1" ->
// "tower/wide". Empty for what is no model.
std::map<std::string, std::string> KerasWeightPlaces(const std::string& model_json);

}  // namespace shoal
