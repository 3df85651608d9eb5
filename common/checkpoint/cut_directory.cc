#include "common/checkpoint/cut_directory.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/base/term.h"
#include "common/base/text/printable.h"
#include "common/checkpoint/manifest.h"
#include "common/files/durable_file.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

constexpr char kCheckpointsName[] = "checkpoints";
constexpr char kMarkerPrefix[] = ".cut-";
constexpr size_t kMaxDigits = 20;
constexpr size_t kMaxShownBytes = 256;

std::string Shown(const std::string& text) { return Printable(text, kMaxShownBytes); }

bool IsNumber(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxDigits &&
         std::all_of(text.begin(), text.end(), absl::ascii_isdigit);
}

bool IsCutDirectoryName(absl::string_view name, uint64_t cut_step, uint64_t term) {
  if (!absl::ConsumePrefix(&name, CutDirectoryName(cut_step, term))) return false;
  return name.empty() || (absl::ConsumePrefix(&name, "-") && IsNumber(name));
}

bool IsCutMarkerName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kMarkerPrefix)) return false;
  const std::vector<absl::string_view> numbers = absl::StrSplit(name, '-');
  return numbers.size() == 2 && IsNumber(numbers[0]) && IsNumber(numbers[1]);
}

}  // namespace

std::string CutDirectoryName(uint64_t cut_step, uint64_t term) {
  return absl::StrFormat("step-%012d-%s", cut_step, TermText(term));
}

std::string CutMarkerName(uint32_t coordinator_id, uint64_t attempt) {
  return absl::StrCat(kMarkerPrefix, coordinator_id, "-", attempt);
}

absl::Status CheckInCheckpoints(const std::string& directory, const std::string& checkpoints) {
  const fs::path path(directory);
  const bool plain = path.is_absolute() && AbsolutePath(directory) == directory &&
                     directory.find('\0') == std::string::npos;
  const fs::path parent = path.parent_path();
  const bool inside =
      checkpoints.empty() ? parent.filename() == kCheckpointsName : parent == checkpoints;
  if (plain && inside) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", Shown(directory), "\" is not in ",
                   checkpoints.empty() ? "a directory \"checkpoints\"" : Shown(checkpoints),
                   ", the checkpoints of this ps' run; expected an absolute path without \"..\""));
}

absl::Status CheckCutNames(const CutPlace& place) {
  SHOAL_RETURN_IF_ERROR(CheckInCheckpoints(place.directory, place.checkpoints));
  const std::string name = fs::path(place.directory).filename().string();
  if (!IsCutDirectoryName(name, place.cut_step, place.term)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", Shown(place.directory), "\" is not the directory of this cut: its name begins with ",
        CutDirectoryName(place.cut_step, place.term)));
  }
  if (!IsCutMarkerName(place.marker)) {
    return absl::InvalidArgumentError(absl::StrCat("\"", Shown(place.marker),
                                                   "\" is not the name of a marker: expected ",
                                                   kMarkerPrefix, "NUMBER-NUMBER"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> SeesCutDirectory(const CutPlace& place, FileSystem* files) {
  const std::string marker = absl::StrCat(place.directory, "/", place.marker);
  if (!files->Exists(marker)) return false;
  for (const std::string& path : {place.directory, marker}) {
    if (files->IsLink(path)) return LinkError(path);
  }
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         files->Open(marker, FileSystem::Mode::kRead));
  SHOAL_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  if (size != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(marker, " has ", size,
                     " bytes; the marker of a cut must be empty, so the ps writes nothing there"));
  }
  const std::string manifest = absl::StrCat(place.directory, "/", kManifestName);
  if (files->Exists(manifest) || files->IsLink(manifest)) {
    return absl::FailedPreconditionError(
        absl::StrCat(place.directory, " holds a checkpoint, which is never overwritten"));
  }
  return true;
}

}  // namespace shoal
