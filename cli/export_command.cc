#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "common/archive/model_file.h"
#include "common/base/status_macros.h"
#include "common/files/durable_file.h"
#include "common/job/job.h"
#include "common/json/json_text.h"
#include "common/optimizer/optimizer.h"
#include "common/run/run_paths.h"
#include "common/run/run_verdict.h"

namespace shoal {
namespace {

struct ExportOptions {
  std::string run_dir;
  std::string format = "keras";
  std::string checkpoint;
  std::string output;
  bool best = false;
  bool overwrite = false;
};

const std::map<std::string, ModelFormat>& Formats() {
  static const std::map<std::string, ModelFormat> formats = {
      {"keras", ModelFormat::kKeras}, {"safetensors", ModelFormat::kSafetensors}};
  return formats;
}

absl::StatusOr<StoredCheckpoint> FindCheckpoint(const ExportOptions& options) {
  const RunPaths run{options.run_dir};
  if (options.best) return BestCheckpointOf(run);
  if (options.checkpoint.empty()) return LastCheckpointOf(run);
  // Its name alone says one of the run.
  const std::string in_run = absl::StrCat(run.checkpoints(), "/", options.checkpoint);
  StoredCheckpoint checkpoint;
  checkpoint.directory =
      AbsolutePath(RealFileSystem()->IsDirectory(in_run) ? in_run : options.checkpoint);
  SHOAL_ASSIGN_OR_RETURN(checkpoint.manifest, Manifest::Read(checkpoint.directory));
  return checkpoint;
}

absl::Status Export(const ExportOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const StoredCheckpoint checkpoint, FindCheckpoint(options));
  SHOAL_ASSIGN_OR_RETURN(
      const std::string text,
      ReadSmallFile(absl::StrCat(checkpoint.directory, "/", kJobName), kMaxJsonBytes));
  SHOAL_ASSIGN_OR_RETURN(const Job job,
                         ParseResolvedJob(text, absl::StrCat(checkpoint.directory, "/", kJobName)));
  SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakeOptimizer(job.optimizer));
  const std::string output = options.output.empty()
                                 ? absl::StrCat(options.run_dir, "/", job.name, ".", options.format)
                                 : options.output;
  SHOAL_RETURN_IF_ERROR(WriteModelFile(checkpoint, {.format = Formats().at(options.format),
                                                    .path = output,
                                                    .slot = optimizer->average_slot(),
                                                    .replace = options.overwrite}));
  return PrintReport(absl::StrCat(output, ": the model of ", job.name, " after ",
                                  checkpoint.manifest.cut_step, " steps (", checkpoint.directory,
                                  ")\n"));
}

}  // namespace

void AddExportCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app->add_subcommand("export", "Write a trained model as Keras opens it");
  command->add_option("RUN", options->run_dir, "The run directory")->required();
  std::vector<std::string> names;
  for (const auto& [name, format] : Formats()) names.push_back(name);
  command
      ->add_option("--format", options->format,
                   "keras: what keras.models.load_model opens; safetensors: the weights alone")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  CLI::Option* checkpoint = command->add_option(
      "--checkpoint", options->checkpoint, "A checkpoint, by its name or directory [the newest]");
  command
      ->add_flag("--best", options->best, "That of the best epoch, as the job's callbacks have it")
      ->excludes(checkpoint);
  command->add_option("-o,--output", options->output, "The file [RUN/NAME.FORMAT]");
  command->add_flag("--overwrite", options->overwrite, "Replace the file if it is there");
  command->footer(
      "The checkpoint is verified; the file is there whole or not at all. Where the job's "
      "optimizer\n"
      "has use_ema, trained weights are their averages. The optimizer's state is not written: "
      "after\n"
      "load_model the model predicts, and is to be compiled before it is trained.\n"
      "\nExamples:\n"
      "  shoal export runs/fashion_mnist\n"
      "  shoal export runs/fashion_mnist --best -o best.keras\n"
      "  shoal export runs/fashion_mnist --format safetensors -o weights.safetensors\n"
      "\nExit codes: 0 written, 65 the checkpoint is damaged, 78 no checkpoint there, or the file "
      "is.");
  command->callback([=] { *chosen = [=] { return ReportStatus(Export(*options)); }; });
}

}  // namespace shoal
