#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"

namespace CLI {
class App;
}

namespace shoal {

// What the command line asks for; returns the exit code of the process.
using Command = std::function<int()>;

// Each adds a command with its flags and help to `app`; parsing then sets `chosen` when it is the
// one that was typed. Both outlive the parsing and the command.
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

// Prints a report on standard output. What in it would steer a terminal is shown, not obeyed:
// names come from files and peers. An error where it cannot be written: the command has failed.
absl::Status PrintReport(const std::string& text);

// Prints an error on standard error, likewise, and returns the exit code that fits it; kExitDone
// when it is none.
int ReportStatus(const absl::Status& status);

}  // namespace shoal
