#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/command.h"
#include "cli/display/console.h"
#include "cli/flags/compute_flags.h"
#include "cli/flags/trained_model_flags.h"
#include "cli/trained_model/data_choice.h"
#include "cli/trained_model/dataset_run.h"
#include "cli/trained_model/evaluation_report.h"
#include "cli/trained_model/trained_model.h"
#include "common/base/status_macros.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/job/job_data.h"

namespace shoal {
namespace {

struct EvaluateOptions {
  TrainedModelOptions model;
  ComputeOptions compute;
  std::string data;
  bool json = false;
};

absl::Status Evaluate(const EvaluateOptions& options) {
  Console console(STDOUT_FILENO, STDERR_FILENO, TerminalStyle::Detect());
  SHOAL_ASSIGN_OR_RETURN(const TrainedModel trained, LoadTrainedModel(options.model));
  for (const std::string& note : trained.notes) console.PrintError(note);
  for (const std::string& line : trained.overridden) console.PrintError(line);
  const JobModel& model = trained.model;
  SHOAL_ASSIGN_OR_RETURN(const DataSource source, ChooseData(trained.job, options.data));
  if (trained.job.training.format == source.format && source.format == "image_folder" &&
      source.class_names.empty()) {
    console.PrintError(absl::StrCat(
        source.paths[0],
        ": classes are numbered in the order of the folders, which may differ from the model's: "
        "the run does not name them, and the training set ",
        trained.job.training.paths[0],
        " is not here; name them with --set 'data.training.class_names=[...]'"));
  }
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<const Dataset> dataset,
                         OpenJobData(source, *model.loss, model.model.graph));
  ModelRunner::Options runner_options = model.RunnerOptions();
  SHOAL_RETURN_IF_ERROR(ChooseCompute(options.compute, &runner_options));
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> runner,
                         CreateModelRunner(std::move(runner_options)));
  DatasetPass pass(dataset, trained.job.batch_size);
  BatchResult sums;
  SHOAL_RETURN_IF_ERROR(ForEachBatch(&pass, "evaluating", &console, [&](uint64_t batch) {
    SHOAL_ASSIGN_OR_RETURN(const BatchResult result,
                           pass.Evaluate(batch, trained.parameters, runner.get()));
    AddBatch(result, &sums);
    return absl::OkStatus();
  }));
  SHOAL_RETURN_IF_ERROR(console.Finish());
  const EvaluationReport report = ReportOf(trained, sums, dataset->LabelSource());
  return PrintReport(options.json ? EvaluationToJson(trained, report)
                                  : FormatEvaluation(trained, report));
}

}  // namespace

void AddEvaluateCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<EvaluateOptions>();
  CLI::App* evaluate =
      app->add_subcommand("evaluate", "Compute loss and metrics of a trained model");
  AddTrainedModelFlags(evaluate, &options->model);
  evaluate->add_option("DATA", options->data,
                       "A file or folder, or `training` or `test`: those of the job [test]");
  AddComputeFlags(evaluate, &options->compute);
  evaluate->add_flag("--json", options->json, "As one line of JSON, with all digits");
  evaluate->footer(
      "Computes the same as workers after an epoch, on this machine. It needs no "
      "cluster and does not\ndisturb a training in progress. Relative paths in --set start from "
      "the current directory.\n"
      "\nExamples:\n"
      "  shoal evaluate runs/fashion_mnist\n"
      "  shoal evaluate runs/flowers holiday_pictures/ --device cuda:0\n"
      "  shoal evaluate runs/flowers training --checkpoint step-000000000500-1-0badcafe --json\n"
      "  shoal evaluate runs/digits --set data.test.images=new.npy --set "
      "data.test.labels=new_labels.npy\n"
      "\nExit codes: 0, 65 a damaged checkpoint or damaged data, 78 no checkpoint there, or data "
      "that do not suit the model,\n143 stopped.");
  evaluate->callback(
      [options, chosen] { *chosen = [options] { return ReportStatus(Evaluate(*options)); }; });
}

}  // namespace shoal
