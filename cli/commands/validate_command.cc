#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/commands/command.h"
#include "cli/flags/job_flags.h"
#include "cli/validation/found_data.h"
#include "cli/validation/job_needs.h"
#include "cli/validation/needs_text.h"
#include "cli/validation/validated_job.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

struct ValidateOptions {
  std::string cluster_spec;
  std::string job;
  std::vector<JobOverride> overrides;
};

absl::Status Validate(const ValidateOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const ValidatedJob validated,
                         ValidateFiles(options.cluster_spec, options.job, options.overrides));
  SHOAL_ASSIGN_OR_RETURN(const FoundData found, CheckData(validated.job, validated.model));
  SHOAL_ASSIGN_OR_RETURN(const JobNeeds needs,
                         NeedsOf(validated, found.training_examples, found.memory));
  std::string text = NeedsText(validated, needs, "the training set is not on this machine");
  if (found.test_examples.has_value()) {
    absl::StrAppend(&text, "test set: ", *found.test_examples, " examples\n");
  }
  if (!found.classes.empty()) absl::StrAppend(&text, found.classes, "\n");
  text += found.not_read_all;
  if (!found.missing.empty()) {
    absl::StrAppend(
        &text,
        "warning: this machine lacks the following data, so it is not checked here; the "
        "workers' machines need it:\n  ",
        absl::StrReplaceAll(found.missing, {{"\n", "\n  "}}), "\n");
  }
  return PrintReport(text);
}

}  // namespace

void AddValidateCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* validate = app->add_subcommand(
      "validate", "Check a job and its cluster spec, and show what the job needs");
  validate->add_option(
      "--cluster_spec", options->cluster_spec,
      "File with the cluster spec; without it, the text of the variable TF_CONFIG; without both, "
      "the job alone");
  validate->add_option("JOB,--job", options->job, "The job file")->required();
  AddJobFlags(validate, &options->overrides);
  validate->footer(
      "Examples:\n"
      "  shoal validate job.json\n"
      "  shoal validate job.json --batch_size 256 --set checkpoint.keep=5\n"
      "  shoal validate job.json --cluster_spec cluster.json\n"
      "  TF_CONFIG=$(cat cluster.json) shoal validate job.json\n"
      "\nExit codes: 0 no errors, though data may be on other machines only; 65 the data on this "
      "machine cannot be read; 78 other errors. Lists all errors.");
  validate->callback(
      [options, chosen] { *chosen = [options] { return ReportStatus(Validate(*options)); }; });
}

}  // namespace shoal
