#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/manifest.h"

namespace shoal {

// The file of the variables in the directory of an exported model; the other is model.json.
inline constexpr char kExportedVariablesName[] = "model.safetensors";

// Saves the model of a checkpoint, verified first, in `directory`: model.safetensors with the
// variables alone, Keras names and shapes, in model order, and model.json. Written beside and
// renamed, so that `directory` holds the whole model, or what was there before; a model exported
// there earlier is replaced. kFailedPrecondition: `directory` exists and holds something else,
// which is left alone. Where a variable has the slot `slot`, that is saved in its place; empty: the
// variables as they are.
absl::Status ExportModel(const StoredCheckpoint& checkpoint, const std::string& directory,
                         const std::string& slot = "", FileSystem* files = RealFileSystem());

}  // namespace shoal
