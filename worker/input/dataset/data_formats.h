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

// Looks at all of the data of one format, without a model, and says what is there and what of it
// is damaged. Of the source the format and the paths are heeded, and how text is read. An error
// where nothing can be said.
using InspectFormat = absl::StatusOr<DataReport> (*)(const DataSource& source);

// The formats, each in a file of formats/.
#define DATA_FORMAT(name, functions, fields)                                         \
  absl::StatusOr<DataReport> Inspect##functions(const DataSource& source);           \
  absl::StatusOr<std::unique_ptr<Dataset>> Open##functions(const DataSource& source, \
                                                           const std::vector<Feature>& inputs);
#include "common/job/data_format_list.inc"
#undef DATA_FORMAT

// Picture files, and all below folders, in the order of the paths, without labels.
absl::StatusOr<std::unique_ptr<Dataset>> OpenPictures(const DataSource& source,
                                                      const std::vector<Feature>& inputs);

struct DataFormat {
  const char* name;
  OpenFormat open;
  InspectFormat inspect;  // null: `shoal dataset inspect` refuses it
};
// Null where the format is not known.
const DataFormat* FindDataFormat(const std::string& name);

// The names of the classes of a folder, in the order of their numbers: its "class_names", or else
// its folders, sorted.
absl::StatusOr<std::vector<std::string>> ClassNamesOf(const DataSource& image_folder);

// The names of the columns that are a model's one input where a CSV's source names none: all but
// the label's and the weights', in the order of its first file; their numbers where it has no
// header.
absl::StatusOr<std::vector<std::string>> ColumnsOf(const DataSource& csv);

// That a CSV has these columns.
absl::Status CheckColumns(const DataSource& csv, const std::vector<std::string>& wanted);

}  // namespace shoal
