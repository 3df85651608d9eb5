#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/input/data_report.h"
#include "worker/input/dataset.h"

namespace shoal {

// Opens the data of one format, as OpenDataset does, without subset and cache.
using OpenFormat = absl::StatusOr<std::unique_ptr<Dataset>> (*)(const DataSource& source,
                                                                const std::vector<Feature>& inputs);

// Looks at all of the data of one format, without a model, and says what is there and what of it
// is damaged. Of the source the format and the paths are heeded, and how text is read. An error
// where nothing can be said.
using InspectFormat = absl::StatusOr<DataReport> (*)(const DataSource& source);

// The formats, each in a file of formats/; the table is in data_formats.cc.
absl::StatusOr<DataReport> InspectArrays(const DataSource& source);
absl::StatusOr<DataReport> InspectImageFolder(const DataSource& source);
absl::StatusOr<DataReport> InspectCifar(const DataSource& source);
absl::StatusOr<DataReport> InspectNpz(const DataSource& source);
absl::StatusOr<DataReport> InspectCsv(const DataSource& source);
absl::StatusOr<DataReport> InspectTfRecord(const DataSource& source);
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

struct DataFormat {
  const char* name;
  OpenFormat open;
  InspectFormat inspect;
};
// Null where the format is not known.
const DataFormat* FindDataFormat(const std::string& name);

}  // namespace shoal
