#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands/command.h"
#include "common/base/text/nearest_name.h"
#include "common/base/version.h"
#include "common/daemon/process/exit_code.h"
#include "common/daemon/process/process_environment.h"
#include "common/daemon/settings/command_line.h"
#include "common/rpc/grpc/library_log.h"

namespace {

// Prints groups of alternative options below their title. CLI11 would print a box of brackets.
class HelpFormatter : public CLI::Formatter {
  std::string make_expanded(const CLI::App* group) const override {
    return make_group(group->get_group(), /*is_positional=*/false,
                      group->get_options([group](const CLI::Option* option) {
                        return option != group->get_help_ptr();
                      }));
  }
};

// If the words before the first flag lead to an unknown command or to none, returns a message with
// the most similar command or with all; else empty. CLI11 would only say that one is required.
std::string DescribeUnknownCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  const CLI::App* command = &app;
  std::string typed = app.get_name();
  for (size_t i = 0;; ++i) {
    std::vector<std::string> names;
    const CLI::App* next = nullptr;
    for (const CLI::App* each : command->get_subcommands([](const CLI::App*) { return true; })) {
      if (each->get_name().empty()) continue;  // a group of options
      names.push_back(each->get_name());
      if (i < arguments.size() && each->get_name() == arguments[i]) next = each;
    }
    if (names.empty()) return "";
    if (i == arguments.size())
      return absl::StrCat("`", typed, "` needs a command: ", absl::StrJoin(names, ", "));
    if (arguments[i].empty() || arguments[i].starts_with("-")) return "";
    if (next == nullptr) {
      const std::string nearest = shoal::NearestName(arguments[i], names);
      return absl::StrCat("`", typed, "` has no command `", arguments[i], "`; ",
                          nearest.empty() ? "it has " + absl::StrJoin(names, ", ")
                                          : absl::StrCat("did you mean `", nearest, "`?"));
    }
    command = next;
    absl::StrAppend(&typed, " ", arguments[i]);
  }
}

// Skips failed handshakes: the commands report errors of a connection themselves. `shoal train`
// replaces this.
void PrintLibraryLog(const std::string& message) {
  if (message.starts_with(shoal::kFailedHandshakeLine)) return;
  shoal::ReportStatus(absl::UnknownError(message));
}

int UsageError(const std::string& mistake) {
  std::cerr << "shoal: " << mistake << "\nRun with --help for the commands and their flags.\n";
  return shoal::kExitUsage;
}

}  // namespace

// `shoal`, the command line program.
int main(int argc, char** argv) {
  shoal::OpenStandardDescriptors();
  shoal::ClearProxyVariables();
  shoal::UseSystemNames();
  shoal::KeepOpenSslUntilExit();
  shoal::RaiseFileLimit();  // a data set keeps all its files open
  shoal::SendLibraryLogTo(PrintLibraryLog);
  CLI::App app("Trains neural networks with parameter servers.", "shoal");
  app.set_version_flag("--version", std::string("shoal ") + shoal::kVersion);
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(34);
  app.footer(
      "Examples:\n"
      "  shoal train examples/fashion_mnist/job.json              train on this machine\n"
      "  shoal status runs/fashion_mnist                          progress of a running job\n"
      "  shoal evaluate runs/fashion_mnist                        loss and metrics of its model\n"
      "  shoal predict runs/flowers holiday/*.jpg --top 3         classes of pictures\n"
      "  shoal drain worker:1 10.0.0.1:2222                       have a worker leave\n"
      "  shoal validate job.json --cluster_spec spec.json         check before starting\n"
      "  shoal checkpoint list runs/fashion_mnist                 saved checkpoints\n"
      "  shoal export runs/fashion_mnist                          the model, as Keras opens it\n"
      "  shoal model summary examples/fashion_mnist/model.json    layers and parameters\n"
      "  shoal dataset inspect flowers/                           examples, and which are damaged\n"
      "  shoal bench model examples/fashion_mnist/model.json      how fast it trains here\n"
      "  shoal metrics                                            what /metrics of a daemon has\n"
      "  shoal cert ca ca --job fashion_mnist                     who may take part in a job\n"
      "\n`shoal help COMMAND`, or `shoal COMMAND --help`, says more about each.");
  shoal::Command chosen;
  shoal::AddTrainCommand(&app, &chosen);
  shoal::AddEvaluateCommand(&app, &chosen);
  shoal::AddPredictCommand(&app, &chosen);
  shoal::AddStatusCommand(&app, &chosen);
  shoal::AddDrainCommand(&app, &chosen);
  shoal::AddValidateCommand(&app, &chosen);
  shoal::AddCheckpointCommand(&app, &chosen);
  shoal::AddExportCommand(&app, &chosen);
  shoal::AddModelCommand(&app, &chosen);
  shoal::AddDatasetCommand(&app, &chosen);
  shoal::AddBenchCommand(&app, &chosen);
  shoal::AddMetricsCommand(&app, &chosen);
  shoal::AddCertCommand(&app, &chosen);
  shoal::RejectEmptyValues(&app);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  const std::string unknown = DescribeUnknownCommand(app, arguments);
  if (!unknown.empty()) return UsageError(unknown);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 parses them from the end
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::Success& success) {
    std::ostringstream text;
    app.exit(success, text, text);  // help or version
    return shoal::ReportStatus(shoal::PrintReport(text.str()));
  } catch (const CLI::Error& error) {
    return UsageError(shoal::DescribeMistake(app, error));
  }
  return chosen();
}
