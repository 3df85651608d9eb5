#include "cli/flags/model_in_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/archive/keras_archive.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

// Returns a hint if `text`, which is not a model, is a job; else empty.
std::string HintOfJob(const std::string& path, const std::string& text,
                      const std::string& command) {
  const nlohmann::json root = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object() || root.contains("class_name") || !root.contains("model")) return "";
  const std::string is_job = path + " is a job, not a model; ";
  const nlohmann::json& model = root["model"];
  if (!model.is_string()) return is_job + "its model is at $.model";
  return absl::StrCat(
      is_job, "give its model: shoal ", command, " ",
      (std::filesystem::path(path).parent_path() / model.get<std::string>()).string());
}

}  // namespace

absl::StatusOr<KerasModel> ReadModel(const std::string& path, const std::string& command) {
  SHOAL_ASSIGN_OR_RETURN(const std::string text,
                         IsZipArchive(path) ? ReadArchivedModel(path) : ReadJsonFile(path));
  absl::StatusOr<KerasModel> model = ParseKerasModel(text);
  if (model.ok()) return model;
  if (const std::string hint = HintOfJob(path, text, command); !hint.empty()) {
    return absl::InvalidArgumentError(hint);
  }
  return WithSource(path, model.status());
}

}  // namespace shoal
