#include "common/job/job_path.h"

#include <filesystem>
#include <nlohmann/json.hpp>

namespace shoal {

std::string ReadJobPath(JsonObject& object, const char* key, const nlohmann::json& value,
                        const std::string& base_dir) {
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
  return (std::filesystem::path(base_dir) / path).lexically_normal().string();
}

}  // namespace shoal
