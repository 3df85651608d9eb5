#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/archive/byte_source.h"

namespace shoal {

// Keras 3's `.keras`: a zip archive of metadata.json, config.json (the model) and model.weights.h5
// (its values). All are uncompressed.

// Whether the file at `path` is a zip archive, by its first bytes. False if it cannot be read.
bool IsZipArchive(const std::string& path);

// Returns the text of its config.json, at most kMaxJsonBytes. Errors name the archive and the
// member.
absl::StatusOr<std::string> ReadArchivedModel(const std::string& path);

// Opens its model.weights.h5 and reads it once to check the checksum. Rejects a compressed member.
// This keeps its size within that of the archive.
absl::StatusOr<ByteSource> OpenArchivedWeights(const std::string& path);

// Writes a new archive of the model and the HDF5 file at `weights`, and syncs it.
absl::Status WriteKerasArchive(const std::string& path, const std::string& model_json,
                               const std::string& weights);

}  // namespace shoal
