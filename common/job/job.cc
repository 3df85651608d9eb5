#include "common/job/job.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/archive/byte_source.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/manifest.h"
#include "common/job/data_source_reader.h"
#include "common/job/job_overrides.h"
#include "common/job/job_reader.h"
#include "common/job/mistaken_job_file.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

// Text that is not JSON comes only from a Job built by hand; keeps it as a string.
json JsonOrString(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

// Reports every error, unsupported features included, as a wrong job file.
absl::StatusOr<Job> JobOrErrors(Job job, const JsonErrors& errors) {
  if (!errors.empty()) return absl::InvalidArgumentError(errors.ToStatus().message());
  return job;
}

}  // namespace

std::string Job::ResolvedText() const {
  json root;
  root["name"] = name;
  root["model"] = JsonOrString(model_json);
  if (!initial_weights.path.empty()) {
    root["initial_weights"] = {
        {"path", initial_weights.path},
        {"crc32c", absl::StrCat(absl::Hex(initial_weights.crc32c, absl::kZeroPad8))}};
  }
  root["data"]["training"] = DataSourceToJson(training);
  if (!test.empty()) root["data"]["test"] = DataSourceToJson(test);
  root["loss"] = JsonOrString(loss);
  root["metrics"] = json::array();
  for (const std::string& metric : metrics) root["metrics"].push_back(JsonOrString(metric));
  for (const std::string& metric : weighted_metrics)
    root["weighted_metrics"].push_back(JsonOrString(metric));
  for (const auto& [of_class, weight] : class_weight)
    root["class_weight"][std::to_string(of_class)] = weight;
  root["callbacks"] = json::array();
  for (const Callback& callback : callbacks)
    root["callbacks"].push_back(JsonOrString(callback.config));
  root["optimizer"] = JsonOrString(optimizer);
  root["batch_size"] = batch_size;
  if (micro_batch_size > 0) root["micro_batch_size"] = micro_batch_size;
  if (epochs > 0) root["epochs"] = epochs;
  if (steps > 0) root["steps"] = steps;
  root["strategy"] = {{"name", strategy.name},
                      {"min_shard_bytes", strategy.min_shard_bytes},
                      {"chunk_bytes", strategy.chunk_bytes},
                      {"window_steps", strategy.window_steps},
                      {"lease_timeout_seconds", strategy.lease_timeout_seconds}};
  if (strategy.speculate_after > 0) root["strategy"]["speculate_after"] = strategy.speculate_after;
  if (strategy.max_staleness.has_value())
    root["strategy"]["max_staleness"] = *strategy.max_staleness;
  if (strategy.learning_rate_by_staleness) root["strategy"]["learning_rate_by_staleness"] = true;
  if (!strategy.scale_learning_rate.empty())
    root["strategy"]["scale_learning_rate"] = strategy.scale_learning_rate;
  if (strategy.momentum_by_workers) root["strategy"]["momentum_by_workers"] = true;
  if (strategy.warmup_steps > 0) root["strategy"]["warmup_steps"] = strategy.warmup_steps;
  if (strategy.workers > 0) root["strategy"]["workers"] = strategy.workers;
  if (strategy.look_ahead > 0) root["strategy"]["look_ahead"] = strategy.look_ahead;
  if (strategy.worker_momentum > 0) root["strategy"]["worker_momentum"] = strategy.worker_momentum;
  if (strategy.gradients_per_update > 0)
    root["strategy"]["gradients_per_update"] = strategy.gradients_per_update;
  if (strategy.local()) root["strategy"]["batches_per_step"] = strategy.batches_per_step;
  if (strategy.fragments > 1) root["strategy"]["fragments"] = strategy.fragments;
  if (!strategy.outer_optimizer.empty())
    root["strategy"]["outer_optimizer"] = JsonOrString(strategy.outer_optimizer);
  if (!compression.push.empty()) root["compression"]["push"] = JsonOrString(compression.push);
  if (!compression.pull.empty()) root["compression"]["pull"] = JsonOrString(compression.pull);
  root["checkpoint"] = {{"every_steps", checkpoint.every_steps},
                        {"every_seconds", checkpoint.every_seconds},
                        {"keep", checkpoint.keep}};
  root["stop_after_nan_steps"] = stop_after_nan_steps;
  root["seed"] = seed;
  // nlohmann::json keeps keys sorted and writes the shortest digits that read back as the same
  // number. All strings of a job that was loaded are UTF-8.
  return root.dump();
}

absl::StatusOr<uint32_t> ChecksumOfWeights(const std::string& path) {
  const bool is_checkpoint = RealFileSystem()->IsDirectory(path);
  SHOAL_ASSIGN_OR_RETURN(const ByteSource source,
                         OpenByteSource(is_checkpoint ? path + "/" + kManifestName : path));
  return ChecksumOf(source);
}

uint32_t JobFingerprint(std::string_view resolved_text) { return Crc32c(resolved_text); }

uint32_t Job::Fingerprint() const { return JobFingerprint(ResolvedText()); }

absl::StatusOr<Job> LoadJob(const std::string& path, bool check_data,
                            const std::vector<JobOverride>& overrides,
                            std::vector<std::string>* overridden) {
  SHOAL_RETURN_IF_ERROR(CheckMistakenFile(path));
  SHOAL_ASSIGN_OR_RETURN(const std::string text, ReadJsonFile(path));
  SHOAL_ASSIGN_OR_RETURN(json root, ParseJson(text, path));
  SHOAL_RETURN_IF_ERROR(CheckMistakenModel(path, root));
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat(path, ": has no absolute path: ", error.message()));
  }
  JsonErrors errors(path);
  std::vector<std::string> lines = ApplyJobOverrides(overrides, &root, &errors);
  if (overridden != nullptr) *overridden = std::move(lines);
  JobReadOptions options{.base_dir = absolute.parent_path().string(), .check_data = check_data};
  // Typed paths are relative to the current directory, as for other commands.
  options.given_dir = std::filesystem::current_path(error).string();
  for (const JobOverride& each : overrides) options.given.push_back(PathOfOverride(each));
  Job job = ReadJob(root, options, &errors);
  return JobOrErrors(std::move(job), errors);
}

absl::StatusOr<Job> ParseResolvedJob(const std::string& text, const std::string& source,
                                     const std::vector<JobOverride>& overrides,
                                     std::vector<std::string>* overridden) {
  SHOAL_ASSIGN_OR_RETURN(json root, ParseJson(text, source));
  JsonErrors errors(source);
  JobReadOptions options;
  if (!overrides.empty()) {
    std::error_code error;
    options.base_dir = std::filesystem::current_path(error).string();
    if (error) return absl::UnavailableError("no current directory: " + error.message());
    std::vector<std::string> lines = ApplyJobOverrides(overrides, &root, &errors);
    if (overridden != nullptr) *overridden = std::move(lines);
  }
  Job job = ReadJob(root, options, &errors);
  return JobOrErrors(std::move(job), errors);
}

}  // namespace shoal
