#include "common/run/run_outcome.h"

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "common/base/text/printable.h"
#include "common/files/durable_file.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxOutcomeBytes = 1 << 20;
constexpr size_t kMaxCauseBytes = 16 << 10;

}  // namespace

absl::Status WriteRunOutcome(const RunPaths& paths, const RunOutcome& outcome, FileSystem* files) {
  nlohmann::ordered_json root;
  root["exit_code"] = outcome.exit_code;
  root["cause"] = outcome.cause;
  return ReplaceFile(paths.end(), root.dump(1, ' ', false, json::error_handler_t::replace) + "\n",
                     files);
}

std::optional<RunOutcome> ReadRunOutcome(const RunPaths& paths, FileSystem* files) {
  const absl::StatusOr<std::string> text = ReadSmallFile(paths.end(), kMaxOutcomeBytes, files);
  if (!text.ok()) return std::nullopt;
  const absl::StatusOr<json> root = ParseJson(*text, paths.end());
  if (!root.ok() || !root->is_object()) return std::nullopt;
  const auto code = root->find("exit_code"), cause = root->find("cause");
  if (code == root->end() || !code->is_number_integer()) return std::nullopt;
  RunOutcome outcome{.exit_code = code->get<int>()};
  if (cause != root->end() && cause->is_string())
    outcome.cause = PrintableLines(cause->get<std::string>(), kMaxCauseBytes);
  return outcome;
}

absl::Status RemoveRunOutcome(const RunPaths& paths, FileSystem* files) {
  const absl::Status removed = files->RemoveFile(paths.end());
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

}  // namespace shoal
