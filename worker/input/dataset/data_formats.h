#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/input/dataset/data_report.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// Opens the data of one format, as OpenDataset does, without subset and cache.
using OpenFormat = absl::StatusOr<std::unique_ptr<Dataset>> (*)(const DataSource& source,
                                                                const std::vector<Feature>& inputs);

// Inspects all data of one format without a model, and reports the content and the damage. Uses
// only the format, the paths and the text options of the source. Returns an error if a report is
// not possible.
using InspectFormat = absl::StatusOr<DataReport> (*)(const DataSource& source);

// The formats, each in its own file in formats/.
#define DATA_FORMAT(name, functions, fields)                                         \
  absl::StatusOr<DataReport> Inspect##functions(const DataSource& source);           \
  absl::StatusOr<std::unique_ptr<Dataset>> Open##functions(const DataSource& source, \
                                                           const std::vector<Feature>& inputs);
#include "common/job/data_format_list.inc"
#undef DATA_FORMAT

// Opens picture files, and all pictures below folders, in the order of the paths, without labels.
absl::StatusOr<std::unique_ptr<Dataset>> OpenPictures(const DataSource& source,
                                                      const std::vector<Feature>& inputs);

struct DataFormat {
  const char* name;
  OpenFormat open;
  InspectFormat inspect;  // null: `shoal dataset inspect` rejects the format
};
// Returns null if the format is unknown.
const DataFormat* FindDataFormat(const std::string& name);

// Returns the names of a folder's classes, in the order of their numbers: "class_names", or else
// its folders, sorted.
absl::StatusOr<std::vector<std::string>> ClassNamesOf(const DataSource& image_folder);

// Returns the columns that form a model's only input if the source of a CSV names none. These are
// all but those of labels and weights, in the order of its first file. Without a header, their
// names are their numbers.
absl::StatusOr<std::vector<std::string>> ColumnsOf(const DataSource& csv);

// Returns an error unless a CSV has these columns.
absl::Status CheckColumns(const DataSource& csv, const std::vector<std::string>& wanted);

}  // namespace shoal
