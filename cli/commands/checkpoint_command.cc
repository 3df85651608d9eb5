#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "cli/commands/command.h"
#include "cli/coordinator_calls/ask_coordinator.h"
#include "cli/flags/coordinator_option.h"
#include "cli/reports/checkpoint_report.h"
#include "common/base/status_macros.h"
#include "common/daemon/process/exit_code.h"
#include "common/rpc/network.h"
#include "proto/cluster.pb.h"

namespace shoal {
namespace {

int Print(const absl::StatusOr<CheckpointReport>& report) {
  if (!report.ok()) return ReportStatus(report.status());
  const int code = ReportStatus(PrintReport(report->text));
  return report->all_intact ? code : static_cast<int>(kExitBadData);
}

int List(const std::string& directory) { return Print(ListCheckpoints(directory, absl::Now())); }

int Show(const std::string& directory) {
  const absl::StatusOr<std::string> text = ShowCheckpoint(directory);
  return ReportStatus(text.ok() ? PrintReport(*text) : text.status());
}

int Verify(const std::string& directory) { return Print(VerifyAllFiles(directory)); }

// Longer than a coordinator's time limit for a cut.
constexpr Time kNowTimeout = std::chrono::minutes(10);

absl::Status Now(const CoordinatorOption& job) {
  SHOAL_ASSIGN_OR_RETURN(const std::string coordinator, job.LeaderAddress());
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<TlsSession> tls, job.OpenTls());
  proto::CheckpointReply reply;
  SHOAL_RETURN_IF_ERROR(AskCoordinator(coordinator, kCheckpointMethod, proto::CheckpointRequest(),
                                       kNowTimeout, tls, &reply));
  return PrintReport(reply.directory() + "\n");
}

void AddNow(CLI::App* parent, Command* chosen) {
  auto job = std::make_shared<CoordinatorOption>();
  CLI::App* command = parent->add_subcommand(
      "now", "Make a running job write a checkpoint; prints its directory once it is on disk");
  job->AddTo(command);
  command->footer(
      "The checkpoint holds every step that is done when the command starts; training continues\n"
      "meanwhile. The command says what it waits for, and gives up after 10 minutes; the job\n"
      "writes the checkpoint in any case.\n"
      "\nExample:\n  shoal checkpoint now runs/fashion_mnist\n"
      "\nExit codes: 0 written, 78 no address found, or a wrong one, 138 not written: the message "
      "says why.");
  command->callback([=] { *chosen = [=] { return ReportStatus(Now(*job)); }; });
}

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
  CLI::App* checkpoint = app->add_subcommand("checkpoint", "Examine checkpoints, or write one now");
  checkpoint->require_subcommand(1);
  Add(checkpoint, chosen, "list", "List the checkpoints of a run, newest first", List);
  Add(checkpoint, chosen, "show", "Show the content of the newest one", Show);
  Add(checkpoint, chosen, "verify", "Read every file and compare it with its checksum", Verify);
  AddNow(checkpoint, chosen);
  checkpoint->footer(
      "Examples:\n"
      "  shoal checkpoint list runs/fashion_mnist\n"
      "  shoal checkpoint show runs/fashion_mnist/checkpoints/step-000000000500-1-0badcafe\n"
      "  shoal checkpoint verify runs/fashion_mnist\n"
      "  shoal checkpoint now runs/fashion_mnist\n"
      "\nExit codes: 0 all whole, 65 something is damaged, 78 no checkpoint there.");
}

}  // namespace shoal
