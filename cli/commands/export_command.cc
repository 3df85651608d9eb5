#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/command.h"
#include "cli/display/console.h"
#include "cli/flags/output_ending.h"
#include "cli/flags/trained_model_flags.h"
#include "cli/trained_model/checkpoint_choice.h"
#include "common/base/status_macros.h"
#include "common/job/job_strategy.h"
#include "common/optimizer/optimizer.h"
#include "common/run/checkpoint_job.h"
#include "common/saved_model/model_file.h"

namespace shoal {
namespace {

struct ExportOptions {
  std::string path;
  CheckpointChoice choice;
  std::string format = "keras";
  std::string output;
  bool overwrite = false;
};

const std::map<std::string, ModelFormat>& Formats() {
  static const std::map<std::string, ModelFormat> formats = {
      {"keras", ModelFormat::kKeras}, {"safetensors", ModelFormat::kSafetensors}};
  return formats;
}

absl::Status Export(const ExportOptions& options) {
  Console console(STDOUT_FILENO, STDERR_FILENO, TerminalStyle::Detect());
  // Keras chooses the format by the file's ending.
  const std::string endings[] = {"." + options.format};
  if (!options.output.empty()) {
    const absl::StatusOr<size_t> ending = EndingOf(options.output, endings);
    if (!ending.ok() && options.format == "keras") {
      return absl::InvalidArgumentError(
          absl::StrCat(ending.status().message(), ", or give --format safetensors"));
    }
    SHOAL_RETURN_IF_ERROR(ending.status());
  }
  SHOAL_ASSIGN_OR_RETURN(const FoundCheckpoints found, FindCheckpoints(options.path));
  std::vector<std::string> notes;
  SHOAL_ASSIGN_OR_RETURN(const StoredCheckpoint checkpoint,
                         ChooseCheckpoint(found, options.choice, &notes));
  for (const std::string& note : notes) console.PrintError(note);
  SHOAL_ASSIGN_OR_RETURN(const Job job, JobOf(checkpoint));
  SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakePsOptimizer(job));
  const std::string output =
      options.output.empty()
          ? absl::StrCat(found.run.empty() ? "." : found.run, "/", job.name, ".", options.format)
          : options.output;
  const absl::Status written = WriteModelFile(checkpoint, {.format = Formats().at(options.format),
                                                           .path = output,
                                                           .slot = optimizer->average_slot(),
                                                           .replace = options.overwrite});
  if (absl::IsUnimplemented(written)) {
    return absl::UnimplementedError(
        absl::StrCat(written.message(), "; or give --format safetensors"));
  }
  SHOAL_RETURN_IF_ERROR(NameOverwriteFlag(written));
  return PrintReport(absl::StrCat(output, ": the model of ", job.name, " after ",
                                  checkpoint.manifest.cut_step, " steps (", checkpoint.directory,
                                  ")\n"));
}

}  // namespace

void AddExportCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app->add_subcommand("export", "Write a trained model for Keras");
  AddCheckpointFlags(command, &options->path, &options->choice);
  std::vector<std::string> names;
  for (const auto& [name, format] : Formats()) names.push_back(name);
  command
      ->add_option("--format", options->format,
                   "keras: for keras.models.load_model; safetensors: only the weights")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  command->add_option("-o,--output", options->output,
                      "The file [NAME.FORMAT in the run directory]");
  AddOverwriteFlag(command, &options->overwrite);
  command->footer(
      "Verifies the checkpoint first, and writes the whole file or none. If the job's optimizer\n"
      "has use_ema, the weights are their averages. The file has no optimizer state: after\n"
      "load_model, compile the model before you train it.\n"
      "\nExamples:\n"
      "  shoal export runs/fashion_mnist\n"
      "  shoal export runs/fashion_mnist --best -o best.keras\n"
      "  shoal export runs/fashion_mnist --format safetensors -o weights.safetensors\n"
      "\nExit codes: 0 written, 65 the checkpoint is damaged, 78 no checkpoint there, or the file "
      "is.");
  command->callback([=] { *chosen = [=] { return ReportStatus(Export(*options)); }; });
}

}  // namespace shoal
