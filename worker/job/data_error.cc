#include "worker/job/data_error.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace shoal {
namespace {

constexpr char kDataErrorUrl[] = "shoal/data_error";

// Returns ", line 3" for each place that the text names by a number.
std::string PlacesIn(const std::string& text) {
  static constexpr const char* kUnits[] = {"line", "row", "record", "example", "byte"};
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  std::string places;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (std::find(std::begin(kUnits), std::end(kUnits), words[i]) == std::end(kUnits)) continue;
    const size_t digits =
        std::min(words[i + 1].find_first_not_of("0123456789"), words[i + 1].size());
    if (digits > 0) absl::StrAppend(&places, ", ", words[i], " ", words[i + 1].substr(0, digits));
  }
  return places;
}

// Messages about files begin with the path and ": ".
std::string WithoutContent(const std::string& line, absl::StatusCode code) {
  size_t path = line.starts_with('/') ? line.find(": ") : std::string::npos;
  if (path == std::string::npos) path = 0;
  return absl::StrCat(path == 0 ? "the job's data" : line.substr(0, path),
                      PlacesIn(line.substr(path)), ": cannot be used (",
                      absl::StatusCodeToString(code), ")");
}

}  // namespace

absl::Status DataError(absl::Status status) {
  if (!status.ok()) status.SetPayload(kDataErrorUrl, absl::Cord());
  return status;
}

absl::Status BatchError(absl::Status status) {
  const bool of_data = absl::IsInvalidArgument(status) || absl::IsOutOfRange(status);
  return of_data ? DataError(std::move(status)) : status;
}

std::string TextForCoordinator(const absl::Status& status, bool may_quote) {
  const std::string message(status.message());
  if (may_quote || !status.GetPayload(kDataErrorUrl).has_value()) return message;
  std::string text;
  const std::vector<std::string> lines = absl::StrSplit(message, '\n');
  for (const std::string& line : lines)
    absl::StrAppend(&text, WithoutContent(line, status.code()), "\n");
  return absl::StrCat(text,
                      "The log of this worker says what is wrong. It quotes files only to a "
                      "coordinator with a certificate, or on its own machine.");
}

}  // namespace shoal
