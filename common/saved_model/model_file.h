#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/manifest.h"

namespace shoal {

enum class ModelFormat {
  kKeras,        // .keras: keras.models.load_model opens it; without an optimizer
  kSafetensors,  // only the variables, by name
};

// A model file to write at `path`. If `slot` is not empty, each variable with this slot gets the
// slot's values. If `replace` is true, an existing file is replaced.
struct ModelFile {
  ModelFormat format = ModelFormat::kKeras;
  std::string path;
  std::string slot;
  bool replace = false;
};

// Writes the model of a verified checkpoint as one file, completely or not at all. Returns
// kAlreadyExists if the path exists and `replace` is false. Returns kUnimplemented if the model can
// only be written as safetensors.
absl::Status WriteModelFile(const StoredCheckpoint& checkpoint, const ModelFile& file);

}  // namespace shoal
