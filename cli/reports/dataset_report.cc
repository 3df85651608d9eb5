#include "cli/reports/dataset_report.h"

#include "absl/strings/str_cat.h"
#include "cli/trained_model/data_source_guess.h"
#include "common/base/status_macros.h"
#include "worker/input/dataset/data_formats.h"

namespace shoal {

absl::StatusOr<std::string> InspectData(const DataSource& source, uint64_t* damaged) {
  SHOAL_RETURN_IF_ERROR(CheckExists(source.paths[0]));
  const DataFormat* format = FindDataFormat(source.format);
  if (format != nullptr && format->inspect == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(source.paths[0],
                     " is a picture; give a folder that has a folder of pictures for each class"));
  }
  if (format == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("the format \"", source.format, "\" is not known"));
  }
  SHOAL_ASSIGN_OR_RETURN(const DataReport report, format->inspect(source));
  *damaged = report.damaged_count;
  std::string text = absl::StrCat("format: ", source.format, "\n");
  for (const std::string& line : report.lines) absl::StrAppend(&text, line, "\n");
  absl::StrAppend(&text, "damaged: ", report.damaged_count, "\n");
  for (const std::string& line : report.damaged) absl::StrAppend(&text, "  ", line, "\n");
  if (report.damaged_count > report.damaged.size()) {
    absl::StrAppend(&text, "  and ", report.damaged_count - report.damaged.size(), " more\n");
  }
  if (report.skippable_count > 0) {
    const bool all = report.skippable_count == report.damaged_count;
    absl::StrAppend(&text, "A job leaves ",
                    all ? "such examples" : absl::StrCat(report.skippable_count, " of them"),
                    " out with \"damaged\": \"skip\" in its data", all ? "" : "; the others end it",
                    ".\n");
  }
  return text;
}

}  // namespace shoal
