#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/command.h"
#include "cli/flags/job_flags.h"
#include "cli/flags/output_ending.h"
#include "cli/flags/trained_model_flags.h"
#include "cli/reports/dataset_report.h"
#include "cli/trained_model/data_source_guess.h"
#include "cli/validation/validated_job.h"
#include "common/base/status_macros.h"
#include "common/base/text/printable.h"
#include "common/daemon/process/exit_code.h"
#include "common/files/output_file.h"
#include "common/job/data_source_reader.h"
#include "common/job/job_strategy.h"
#include "common/loss/keras_loss.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/pictures/contact_sheet.h"
#include "worker/job/augmented_pictures.h"
#include "worker/job/job_data.h"
#include "worker/job/job_names.h"

namespace shoal {
namespace {

struct InspectOptions {
  std::string path;
  std::string format;
};

int Inspect(const InspectOptions& options) {
  DataSource source{.format = options.format, .paths = {options.path}};
  if (options.format.empty()) {
    absl::StatusOr<DataSource> guessed = GuessDataSource(options.path);
    if (!guessed.ok()) return ReportStatus(guessed.status());
    source = *std::move(guessed);
  }
  uint64_t damaged = 0;
  const absl::StatusOr<std::string> text = InspectData(source, &damaged);
  if (!text.ok()) return ReportStatus(text.status());
  const int code = ReportStatus(PrintReport(*text));
  return code == kExitDone && damaged > 0 ? static_cast<int>(kExitBadData) : code;
}

void AddInspect(CLI::App* dataset, Command* chosen) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* inspect = dataset->add_subcommand(
      "inspect", "Show the content and the damage of a folder or file of examples");
  inspect
      ->add_option("PATH", options->path,
                   "A folder of pictures, or a file: IDX, NPY, .npz, CSV, TFRecord, CIFAR's .bin")
      ->required();
  inspect
      ->add_option("--format", options->format,
                   "Format of the data, as \"format\" in a job file [from its name and content]")
      ->check(CLI::IsMember(DataFormatNames()));
  inspect->footer(
      "Reads everything: decodes pictures and compares checksums.\n\nExamples:\n"
      "  shoal dataset inspect flowers/\n"
      "  shoal dataset inspect train-00000.tfrecord\n"
      "\nExit codes: 0 all data is readable; 65 some data is damaged.");
  inspect->callback([=] { *chosen = [=] { return Inspect(*options); }; });
}

struct ShowOptions {
  std::string job;
  std::vector<JobOverride> overrides;
  uint64_t step = 0;
  std::string output = "batch.png";
  bool overwrite = false;
};

// Returns the class name of a label, if it has one; else its numbers, cut short.
std::string LabelText(std::span<const float> label, const std::vector<std::string>& class_names) {
  const bool one_hot = label.size() > 1 && label.size() == class_names.size();
  const auto number =
      one_hot ? static_cast<float>(std::max_element(label.begin(), label.end()) - label.begin())
              : label[0];
  if ((one_hot || label.size() == 1) && number >= 0 &&
      number < static_cast<float>(class_names.size())) {
    return Printable(class_names[static_cast<size_t>(number)], kMaxNameBytes);
  }
  constexpr size_t kMaxShown = 10;
  std::string text;
  for (size_t i = 0; i < std::min(label.size(), kMaxShown); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " ", label[i]);
  }
  return label.size() > kMaxShown ? text + " ..." : text;
}

absl::Status Show(const ShowOptions& options) {
  const std::string endings[] = {".png"};
  SHOAL_RETURN_IF_ERROR(EndingOf(options.output, endings).status());
  SHOAL_ASSIGN_OR_RETURN(const ValidatedJob validated,
                         ValidateFiles(/*cluster_spec_file=*/"", options.job, options.overrides));
  const Job& job = validated.job;
  SHOAL_RETURN_IF_ERROR(CheckModelOfJob(validated.model));
  auto created = OutputFile::Create(options.output, options.overwrite);
  SHOAL_RETURN_IF_ERROR(NameOverwriteFlag(created.status()));
  const std::unique_ptr<OutputFile> file = *std::move(created);
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<const Loss> loss, MakeLoss(job.loss));
  SHOAL_ASSIGN_OR_RETURN(std::shared_ptr<const Dataset> dataset,
                         OpenJobData(job.training, *loss, validated.model.graph));
  const BatchPlan plan = BatchPlanOf(job, dataset->size());
  BatchSource source({.dataset = dataset, .plan = plan.batches(), .seed = job.seed});
  if (options.step >= plan.steps().total_steps()) {
    return absl::OutOfRangeError(absl::StrCat("there is no step ", options.step, "; the plan has ",
                                              plan.steps().total_steps(), " steps"));
  }
  const uint64_t first_batch = plan.BatchesOf(options.step).first;
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<LoadedBatch> batch, source.Take(first_batch));
  SHOAL_ASSIGN_OR_RETURN(
      const AugmentedPictures pictures,
      AugmentPictures(validated.model.graph, batch->inputs[0],
                      static_cast<int64_t>(batch->examples), job.seed, first_batch));
  SHOAL_ASSIGN_OR_RETURN(const std::vector<std::string> class_names, ClassNamesOfJob(job));
  SHOAL_ASSIGN_OR_RETURN(const std::string png, DrawContactSheet(pictures.values, pictures.shape));
  SHOAL_RETURN_IF_ERROR(file->Append(png));
  SHOAL_RETURN_IF_ERROR(NameOverwriteFlag(file->Finish()));
  std::string text = absl::StrCat(options.output, ": the ", batch->examples, " examples of ",
                                  job.strategy.local() ? "the first batch of " : "", "step ",
                                  options.step, ", row by row\nexample: label\n");
  const size_t label_size = batch->targets.size() / batch->examples;
  for (uint64_t i = 0; i < batch->examples; ++i) {
    absl::StrAppend(
        &text, batch->indices[i], ": ",
        LabelText(std::span(batch->targets).subspan(i * label_size, label_size), class_names),
        "\n");
  }
  return PrintReport(text);
}

void AddShow(CLI::App* dataset, Command* chosen) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* show = dataset->add_subcommand(
      "show", "Draw the pictures of a step's batch, as the model trains on them");
  show->add_option("JOB", options->job, "The job file")->required();
  show->add_option("--step", options->step, "The number of the step")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  show->add_option("-o,--output", options->output, "The PNG file to write")->capture_default_str();
  AddOverwriteFlag(show, &options->overwrite);
  AddJobFlags(show, &options->overrides);
  show->footer(
      "Writes a sheet with all pictures of the batch, and prints their examples and labels. The "
      "pictures are augmented as in that step.\n\n"
      "Example:\n"
      "  shoal dataset show examples/fashion_mnist/job.json --step 7 --output step7.png");
  show->callback([=] { *chosen = [=] { return ReportStatus(Show(*options)); }; });
}

}  // namespace

void AddDatasetCommand(CLI::App* app, Command* chosen) {
  CLI::App* dataset = app->add_subcommand("dataset", "Examine the data of a job");
  dataset->require_subcommand(1);
  AddInspect(dataset, chosen);
  AddShow(dataset, chosen);
  dataset->footer(
      "Examples:\n"
      "  shoal dataset inspect flowers/\n"
      "  shoal dataset show examples/fashion_mnist/job.json");
}

}  // namespace shoal
