#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/command.h"
#include "cli/validation.h"
#include "common/base/status_macros.h"
#include "worker/input/dataset.h"
#include "worker/loss_attributes.h"

namespace shoal {
namespace {

struct ValidateOptions {
  std::string cluster_spec;
  std::string job;
};

absl::Status Validate(const ValidateOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const ValidatedJob validated,
                         ValidateFiles(options.cluster_spec, options.job));
  // The data need not be on this machine: only the workers read it.
  const Graph& graph = validated.model.graph;
  const auto training = OpenDataset(validated.job.training, graph.value(graph.inputs()[0]).shape);
  std::optional<uint64_t> examples;
  if (!training.ok() && !absl::IsNotFound(training.status())) return training.status();
  if (training.ok()) {
    SHOAL_ASSIGN_OR_RETURN(const LossAttributes loss, LossAttributesOf(validated.job.loss));
    SHOAL_RETURN_IF_ERROR(CheckLabels(loss, graph.value(graph.outputs()[0]).shape,
                                      (*training)->label_shape(), validated.job.training.labels));
    if ((*training)->size() > 0) examples = (*training)->size();
  }
  const std::string why_unknown(examples.has_value() ? "" : training.status().message());
  std::fputs(NeedsText(validated, NeedsOf(validated, examples), why_unknown).c_str(), stdout);
  return absl::OkStatus();
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
  validate->footer(
      "Examples:\n"
      "  shoal validate --job job.json\n"
      "  shoal validate --cluster_spec cluster.json --job job.json\n"
      "  TF_CONFIG=$(cat cluster.json) shoal validate --job job.json\n"
      "\nExit codes: 0 all is right, 78 something is wrong: all of it is listed.");
  validate->callback(
      [options, chosen] { *chosen = [options] { return ReportStatus(Validate(*options)); }; });
}

}  // namespace shoal
