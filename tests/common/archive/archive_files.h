#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/archive/hdf5_file.h"

namespace shoal {

// Returns the path of a file in testdata/.
std::string ArchivePath(const std::string& name);

void WriteAll(const std::string& path, const std::string& content);

absl::StatusOr<std::unique_ptr<Hdf5File>> OpenHdf5(const std::string& path);

// Returns a line for each readable data set: "PATH SHAPE: VALUE VALUE".
std::vector<std::string> DatasetLines(const Hdf5File& file);

}  // namespace shoal
