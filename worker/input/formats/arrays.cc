#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/input/dataset/data_formats.h"
#include "worker/input/dataset/feature_shapes.h"
#include "worker/input/files/joined_errors.h"
#include "worker/input/formats/arrays/array_file.h"
#include "worker/input/formats/arrays/array_rows.h"

namespace shoal {

// Opens an array file for each feature and one for the labels. Each is IDX or NPY, detected by
// content.
absl::StatusOr<std::unique_ptr<Dataset>> OpenArrays(const DataSource& source,
                                                    const std::vector<Feature>& inputs) {
  std::vector<DataSource::Feature> files = source.features;
  if (files.empty()) files.push_back({.from = {source.images}});
  // Checked before opening files, which may be missing on the machine that validates.
  SHOAL_ASSIGN_OR_RETURN(const auto matched, MatchFeatures(files, inputs));
  absl::Status status;
  ArrayRows::Arrays arrays;
  for (const DataSource::Feature* file : matched) {
    absl::StatusOr<std::unique_ptr<ArrayFile>> array = ArrayFile::Open(file->from[0], source.roots);
    status = JoinErrors(status, array.status());
    if (array.ok()) arrays.features.push_back(*std::move(array));
  }
  if (!source.unlabelled) {
    absl::StatusOr<std::unique_ptr<ArrayFile>> labels =
        ArrayFile::Open(source.labels, source.roots);
    status = JoinErrors(status, labels.status());
    if (labels.ok()) arrays.labels = *std::move(labels);
  }
  SHOAL_RETURN_IF_ERROR(status);
  return ArrayRows::Make(std::move(arrays), inputs);
}

absl::StatusOr<DataReport> InspectArrays(const DataSource& source) {
  DataReport report;
  for (const std::string& path : source.paths) {
    const absl::StatusOr<std::unique_ptr<ArrayFile>> array = ArrayFile::Open(path, source.roots);
    if (!array.ok()) {
      report.AddDamage(array.status());
    } else {
      report.lines.push_back(absl::StrCat(path, ": ", (*array)->ToString()));
    }
  }
  return report;
}

}  // namespace shoal
