#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/archive/byte_source.h"

namespace shoal {

// Keras 3's `.keras`: a zip archive of metadata.json, config.json (the model) and
// model.weights.h5 (its values), stored as they are.

// Whether the file at `path` is a zip archive, by its first bytes; false where it cannot be read.
bool IsZipArchive(const std::string& path);

// The text of its config.json, of at most kMaxJsonBytes. Errors name archive and member.
absl::StatusOr<std::string> ReadArchivedModel(const std::string& path);

// Its model.weights.h5, read once to compare the checksum. An archive that has it compressed is
// refused: what is read takes no more room than the archive does.
absl::StatusOr<ByteSource> OpenArchivedWeights(const std::string& path);

// Writes a new archive of the model and the HDF5 file at `weights`, synced.
absl::Status WriteKerasArchive(const std::string& path, const std::string& model_json,
                               const std::string& weights);

}  // namespace shoal
