#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/manifest.h"

namespace shoal {

// The file of the variables in an exported model's directory. The other file is model.json.
inline constexpr char kExportedVariablesName[] = "model.safetensors";

// Verifies a checkpoint and saves its model in `directory`: model.json, and model.safetensors with
// only the variables, with Keras's names and shapes, in model order. Writes a new directory next to
// it and renames it. `directory` then holds either the whole model or its previous content. Only a
// crash on a file system that cannot exchange two names may leave that content at "DIRECTORY.old",
// and the whole model at "DIRECTORY.partial". Replaces a model that was exported there earlier.
// Returns kFailedPrecondition, without changes, if `directory` holds anything else. If `slot` is
// not empty, a variable with this slot gets the slot's values.
absl::Status ExportModel(const StoredCheckpoint& checkpoint, const std::string& directory,
                         const std::string& slot = "", FileSystem* files = RealFileSystem());

}  // namespace shoal
