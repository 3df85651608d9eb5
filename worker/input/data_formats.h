#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/input/dataset.h"

namespace shoal {

// Opens the data of one format, as OpenDataset does, without subset and cache.
using OpenFormat = absl::StatusOr<std::unique_ptr<Dataset>> (*)(const DataSource& source,
                                                                const std::vector<Feature>& inputs);

// The formats, each in a file of formats/; the table is in data_formats.cc.
absl::StatusOr<std::unique_ptr<Dataset>> OpenArrays(const DataSource& source,
                                                    const std::vector<Feature>& inputs);
absl::StatusOr<std::unique_ptr<Dataset>> OpenImageFolder(const DataSource& source,
                                                         const std::vector<Feature>& inputs);
absl::StatusOr<std::unique_ptr<Dataset>> OpenCifar(const DataSource& source,
                                                   const std::vector<Feature>& inputs);
absl::StatusOr<std::unique_ptr<Dataset>> OpenNpz(const DataSource& source,
                                                 const std::vector<Feature>& inputs);
absl::StatusOr<std::unique_ptr<Dataset>> OpenCsv(const DataSource& source,
                                                 const std::vector<Feature>& inputs);
absl::StatusOr<std::unique_ptr<Dataset>> OpenTfRecord(const DataSource& source,
                                                      const std::vector<Feature>& inputs);

// Null where the format is not known.
OpenFormat FindDataFormat(const std::string& name);

}  // namespace shoal
