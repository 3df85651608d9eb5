#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace shoal {

// The command on the command line; returns the exit code of the process.
using Command = std::function<int()>;

// Each adds a command with its flags and help to `app`. Parsing then sets `chosen` if the user
// typed that command. Both must outlive the parsing and the command.
void AddTrainCommand(CLI::App* app, Command* chosen);
void AddEvaluateCommand(CLI::App* app, Command* chosen);
void AddPredictCommand(CLI::App* app, Command* chosen);
void AddStatusCommand(CLI::App* app, Command* chosen);
void AddDrainCommand(CLI::App* app, Command* chosen);
void AddValidateCommand(CLI::App* app, Command* chosen);
void AddCheckpointCommand(CLI::App* app, Command* chosen);
void AddExportCommand(CLI::App* app, Command* chosen);
void AddDatasetCommand(CLI::App* app, Command* chosen);
void AddModelCommand(CLI::App* app, Command* chosen);
void AddBenchCommand(CLI::App* app, Command* chosen);
void AddMetricsCommand(CLI::App* app, Command* chosen);
void AddCertCommand(CLI::App* app, Command* chosen);

// Prints a report on standard output. Escapes terminal control characters, because names come from
// files and peers. Returns an error if the output fails: the command has failed then.
absl::Status PrintReport(const std::string& text);

// Prints an error on standard error in the same way and returns its exit code. Returns kExitDone if
// the status is OK.
int ReportStatus(const absl::Status& status);

}  // namespace shoal
