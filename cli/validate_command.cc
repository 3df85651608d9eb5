#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/command.h"
#include "cli/job_flags.h"
#include "cli/validation.h"
#include "common/base/status_macros.h"
#include "worker/input/joined_errors.h"
#include "worker/job_data.h"
#include "worker/loss_attributes.h"

namespace shoal {
namespace {

struct ValidateOptions {
  std::string cluster_spec;
  std::string job;
  std::vector<JobOverride> overrides;
};

// What the job's data is, as far as it is on this machine: only the workers read it.
struct FoundData {
  std::optional<uint64_t> training_examples;
  std::optional<uint64_t> test_examples;
  std::string missing;  // a line for each file that is not here
};

absl::StatusOr<FoundData> CheckData(const ValidatedJob& validated) {
  SHOAL_RETURN_IF_ERROR(CheckModelOfJob(validated.model));
  SHOAL_ASSIGN_OR_RETURN(const LossAttributes loss, LossAttributesOf(validated.job.loss));
  FoundData found;
  const auto check = [&](const Job::DataSource& source, std::optional<uint64_t>* examples) {
    const auto dataset = OpenJobData(source, loss, validated.model.graph);
    if (dataset.ok()) *examples = (*dataset)->size();
    return dataset.status();
  };
  absl::Status status = check(validated.job.training, &found.training_examples);
  if (!validated.job.test.empty()) {
    status = JoinErrors(status, check(validated.job.test, &found.test_examples));
  }
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  found.missing = std::string(status.message());
  return found;
}

absl::Status Validate(const ValidateOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const ValidatedJob validated,
                         ValidateFiles(options.cluster_spec, options.job, options.overrides));
  SHOAL_ASSIGN_OR_RETURN(const FoundData found, CheckData(validated));
  SHOAL_ASSIGN_OR_RETURN(const JobNeeds needs, NeedsOf(validated, found.training_examples));
  std::string text = NeedsText(validated, needs, "the training set is not on this machine");
  if (found.test_examples.has_value()) {
    absl::StrAppend(&text, "test set: ", *found.test_examples, " examples\n");
  }
  if (!found.missing.empty()) {
    absl::StrAppend(&text, "data not looked at, because it is not on this machine:\n  ",
                    absl::StrReplaceAll(found.missing, {{"\n", "\n  "}}), "\n");
  }
  return PrintReport(text);
}

}  // namespace

void AddValidateCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* validate = app->add_subcommand(
      "validate", "Check a job and its cluster spec, and say what the job needs");
  validate->add_option(
      "--cluster_spec", options->cluster_spec,
      "File with the cluster spec; without it, the text of the variable TF_CONFIG; without both, "
      "the job alone");
  validate->add_option("--job", options->job, "The job file")->required();
  AddJobFlags(validate, &options->overrides);
  validate->footer(
      "Examples:\n"
      "  shoal validate --job job.json\n"
      "  shoal validate --job job.json --batch_size 256 --set checkpoint.keep=5\n"
      "  shoal validate --cluster_spec cluster.json --job job.json\n"
      "  TF_CONFIG=$(cat cluster.json) shoal validate --job job.json\n"
      "\nExit codes: 0 all is right, though data may be on other machines only; 65 the data on "
      "this "
      "machine cannot be read; 78 something else is wrong. All of it is listed.");
  validate->callback(
      [options, chosen] { *chosen = [options] { return ReportStatus(Validate(*options)); }; });
}

}  // namespace shoal
