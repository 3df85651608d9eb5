#include "common/base/missing_path.h"

#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/text/nearest_name.h"
#include "common/base/text/printable.h"

namespace shoal {
namespace {

namespace fs = std::filesystem;

// Max names to read from a folder. This takes about a millisecond, since a list may have a thousand
// missing paths.
constexpr size_t kMaxNames = 1000;

std::string NearestIn(const fs::path& folder, const std::string& name) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end && names.size() < kMaxNames; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  return NearestName(name, names);
}

}  // namespace

absl::Status MissingPath(const std::string& path) {
  std::string text = path + ": No such file or directory";
  fs::path there;
  for (const fs::path& name : fs::path(path)) {
    std::error_code error;
    if (fs::exists(there / name, error) || error) {
      there /= name;
      continue;
    }
    const std::string nearest = NearestIn(there, name.string());
    if (!nearest.empty() && nearest != name) {  // equal for a dangling link
      absl::StrAppend(&text, "; did you mean \"",
                      Printable((there / nearest).string(), kMaxReasonBytes), "\"?");
    }
    break;
  }
  return absl::NotFoundError(text);
}

}  // namespace shoal
