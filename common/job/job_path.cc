#include "common/job/job_path.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/text/printable.h"
#include "common/base/text/utf8.h"

namespace shoal {

const std::string& JobReadOptions::BaseOf(const std::string& path) const {
  for (const std::string& above : given) {
    const std::string_view rest =
        std::string_view(path).substr(std::min(path.size(), above.size()));
    if (path.starts_with(above) && (rest.empty() || rest[0] == '.' || rest[0] == '['))
      return given_dir;
  }
  return base_dir;
}

std::string ReadJobPath(JsonObject& object, const char* key, const nlohmann::json& value,
                        const JobReadOptions& options) {
  const std::string& base_dir = options.BaseOf(object.PathOf(key));
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  if (text.empty() || text.find('\0') != std::string::npos) {
    object.AddWrong(key, value, "the path of a file");
    return "";
  }
  const std::filesystem::path path(text);
  if (base_dir.empty() && !path.is_absolute()) {
    object.AddWrong(key, value, "an absolute path");
    return "";
  }
  std::string whole = (std::filesystem::path(base_dir) / path).lexically_normal().string();
  if (!IsUtf8(whole)) {
    object.errors()->Add(
        object.PathOf(key),
        absl::StrCat(
            "is \"", Printable(whole, kMaxReasonBytes),
            "\", which is not UTF-8; the files of a run need UTF-8. Rename the folder or file, or "
            "name another"));
    return "";
  }
  return whole;
}

}  // namespace shoal
