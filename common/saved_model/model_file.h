#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/manifest.h"

namespace shoal {

enum class ModelFormat {
  kKeras,        // .keras: keras.models.load_model opens it; without an optimizer
  kSafetensors,  // the variables alone, by their names
};

// Writes the model of a checkpoint that was verified as one file at `path`, whole or not at all.
// Where a variable has the slot `slot`, that is written in its place; empty: the variables as they
// are. kAlreadyExists where something is there and `replace` is false; kUnimplemented where the
// model can be written as safetensors alone.
struct ModelFile {
  ModelFormat format = ModelFormat::kKeras;
  std::string path;
  std::string slot;
  bool replace = false;
};
absl::Status WriteModelFile(const StoredCheckpoint& checkpoint, const ModelFile& file);

}  // namespace shoal
