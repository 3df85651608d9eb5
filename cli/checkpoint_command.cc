#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "cli/command.h"
#include "common/checkpoint/checkpoint_report.h"
#include "common/daemon/exit_code.h"

namespace shoal {
namespace {

int Print(const absl::StatusOr<CheckpointReport>& report) {
  if (!report.ok()) return ReportStatus(report.status());
  std::fputs(report->text.c_str(), stdout);
  return report->all_whole ? kExitDone : kExitBadData;
}

int List(const std::string& directory) { return Print(ListCheckpoints(directory, absl::Now())); }

int Show(const std::string& directory) {
  const absl::StatusOr<std::string> text = ShowCheckpoint(directory);
  if (!text.ok()) return ReportStatus(text.status());
  std::fputs(text->c_str(), stdout);
  return kExitDone;
}

int Verify(const std::string& directory) { return Print(VerifyAllFiles(directory)); }

void Add(CLI::App* parent, Command* chosen, const char* name, const char* description,
         int (*run)(const std::string&)) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command = parent->add_subcommand(name, description);
  command->add_option("DIR", *directory, "Run directory, its checkpoints/, or one checkpoint")
      ->required();
  command->footer("Example:\n  shoal checkpoint " + std::string(name) + " runs/fashion_mnist");
  command->callback([=] { *chosen = [=] { return run(*directory); }; });
}

}  // namespace

void AddCheckpointCommand(CLI::App* app, Command* chosen) {
  CLI::App* checkpoint = app->add_subcommand("checkpoint", "Look at checkpoints");
  checkpoint->require_subcommand(1);
  Add(checkpoint, chosen, "list", "List the checkpoints of a run, newest first", List);
  Add(checkpoint, chosen, "show", "Show what is in the newest one", Show);
  Add(checkpoint, chosen, "verify", "Read every file and compare it with its checksum", Verify);
  checkpoint->footer(
      "Examples:\n"
      "  shoal checkpoint list runs/fashion_mnist\n"
      "  shoal checkpoint show runs/fashion_mnist/checkpoints/step-000000000500\n"
      "  shoal checkpoint verify runs/fashion_mnist\n"
      "\nExit codes: 0 all whole, 65 something is damaged, 78 no checkpoint there.");
}

}  // namespace shoal
