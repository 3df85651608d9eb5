#include "cli/validation/validated_job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/json/json_errors.h"
#include "common/optimizer/optimizer.h"
#include "common/saved_model/initial_weights.h"

namespace shoal {
namespace {

void Append(const absl::Status& status, std::string* text) {
  if (!status.ok()) absl::StrAppend(text, text->empty() ? "" : "\n", std::string(status.message()));
}

}  // namespace

absl::StatusOr<ValidatedJob> ValidateFiles(const std::string& cluster_spec_file,
                                           const std::string& job_file,
                                           const std::vector<JobOverride>& overrides) {
  ValidatedJob validated;
  std::string errors;
  if (ClusterSpecGiven(cluster_spec_file)) {
    absl::StatusOr<ClusterSpec> cluster = LoadClusterSpec(cluster_spec_file, /*need_task=*/false);
    Append(cluster.status(), &errors);
    if (cluster.ok()) validated.cluster = *std::move(cluster);
  }
  absl::StatusOr<Job> job =
      LoadJob(job_file, /*check_data=*/false, overrides, &validated.overridden);
  Append(job.status(), &errors);
  if (job.ok()) {
    if (validated.cluster.has_value())
      Append(ResolveStrategy(validated.cluster->workers.size(), &*job), &errors);
    absl::StatusOr<KerasModel> model = ModelOfJob(*job, job_file);
    Append(model.status(), &errors);
    if (model.ok()) {
      validated.model = *std::move(model);
      absl::StatusOr<std::string> weights = DescribeInitialWeights(*job, validated.model);
      Append(weights.status(), &errors);
      if (weights.ok()) validated.initial_weights = *std::move(weights);
    }
    validated.job = *std::move(job);
  }
  if (!errors.empty()) return absl::InvalidArgumentError(errors);
  return validated;
}

absl::StatusOr<KerasModel> ModelOfJob(const Job& job, const std::string& job_file) {
  absl::StatusOr<KerasModel> model = ParseKerasModel(job.model_json);
  absl::Status sound = model.status();
  if (sound.ok()) {
    const std::vector<Variable>& variables = model->graph.variables();
    SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakePsOptimizer(job));
    if (const absl::Status found = CheckDecayExclusions(job, variables); !found.ok())
      return absl::InvalidArgumentError(WithSource(job_file, found).message());
    sound = CheckVariables(variables, optimizer->slot_names());
  }
  if (sound.ok()) return model;
  // A model inside the job file has no path.
  const std::string source = job.model_path.empty() ? job_file + ": $.model" : job.model_path;
  return absl::InvalidArgumentError(WithSource(source, sound).message());
}

absl::StatusOr<std::string> DescribeInitialWeights(const Job& job, const KerasModel& model) {
  if (job.initial_weights.path.empty()) return "";
  const absl::StatusOr<InitialWeights> weights =
      FindInitialWeights(job.initial_weights.path, job.model_json, model.graph.variables());
  if (weights.ok()) return weights->ToText();
  const bool of_model = job.initial_weights.path == job.model_path;
  return absl::Status(weights.status().code(),
                      absl::StrCat(of_model ? "$.model: " : "$.initial_weights: ",
                                   std::string(weights.status().message())));
}

}  // namespace shoal
