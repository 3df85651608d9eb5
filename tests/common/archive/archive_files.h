#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/archive/hdf5_file.h"

namespace shoal {

// A file of testdata/.
std::string ArchivePath(const std::string& name);

std::string ReadAll(const std::string& path);
void WriteAll(const std::string& path, const std::string& content);

absl::StatusOr<std::unique_ptr<Hdf5File>> OpenHdf5(const std::string& path);

// A line for each data set that can be read: "PATH SHAPE: VALUE VALUE".
std::vector<std::string> DatasetLines(const Hdf5File& file);

}  // namespace shoal
