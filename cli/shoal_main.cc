#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/command.h"
#include "common/base/nearest_name.h"
#include "common/base/version.h"
#include "common/daemon/command_line.h"
#include "common/daemon/exit_code.h"
#include "common/daemon/process_environment.h"

namespace {

// Options of which one is to be given stand under their title; CLI11 would draw a box of brackets.
class HelpFormatter : public CLI::Formatter {
  std::string make_expanded(const CLI::App* group) const override {
    return make_group(group->get_group(), /*is_positional=*/false,
                      group->get_options([group](const CLI::Option* option) {
                        return option != group->get_help_ptr();
                      }));
  }
};

// What is wrong with the arguments. CLI11 says of an unknown command only that one is required.
std::string Complaint(const CLI::App& app, const CLI::Error& error, const char* first) {
  const std::string mistake = shoal::DescribeMistake(app, error);
  if (first == nullptr || *first == '-') return mistake;
  std::vector<std::string> commands;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_name() == first) return mistake;
    commands.push_back(each->get_name());
  }
  const std::string nearest = shoal::NearestName(first, commands);
  return absl::StrCat("there is no command `", first, "`",
                      nearest.empty() ? "" : absl::StrCat("; did you mean `", nearest, "`?"));
}

}  // namespace

// `shoal`, the command people type.
int main(int argc, char** argv) {
  shoal::OpenStandardDescriptors();
  shoal::ClearProxyVariables();
  CLI::App app("Trains neural networks with parameter servers.", "shoal");
  app.set_version_flag("--version", std::string("shoal ") + shoal::kVersion);
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(34);
  app.footer(
      "Examples:\n"
      "  shoal train examples/fashion_mnist/job.json              train on this machine\n"
      "  shoal status --chief 10.0.0.1:2222                       how a running job goes\n"
      "  shoal drain worker:1 --chief 10.0.0.1:2222               have a worker leave\n"
      "  shoal validate --job job.json --cluster_spec spec.json   check before starting\n"
      "  shoal checkpoint list runs/fashion_mnist                 what has been saved\n"
      "  shoal model summary examples/fashion_mnist/model.json    layers and parameters\n"
      "  shoal metrics                                            what /metrics of a daemon has\n"
      "\n`shoal COMMAND --help` says more about each.");
  shoal::Command chosen;
  shoal::AddTrainCommand(&app, &chosen);
  shoal::AddStatusCommand(&app, &chosen);
  shoal::AddDrainCommand(&app, &chosen);
  shoal::AddValidateCommand(&app, &chosen);
  shoal::AddCheckpointCommand(&app, &chosen);
  shoal::AddModelCommand(&app, &chosen);
  shoal::AddMetricsCommand(&app, &chosen);
  shoal::RefuseEmptyValues(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    std::ostringstream text;
    app.exit(success, text, text);  // the help or the version
    return shoal::ReportStatus(shoal::PrintReport(text.str()));
  } catch (const CLI::Error& error) {
    std::cerr << "shoal: " << Complaint(app, error, argc > 1 ? argv[1] : nullptr)
              << "\nRun with --help for the commands and their flags.\n";
    return shoal::kExitUsage;
  }
  return chosen();
}
