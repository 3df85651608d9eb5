#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/command.h"
#include "cli/coordinator_calls/status_query.h"
#include "cli/display/console.h"
#include "cli/display/resume_advice.h"
#include "cli/display/status_report.h"
#include "cli/flags/coordinator_option.h"
#include "cli/reports/run_without_coordinator.h"
#include "common/base/status_macros.h"
#include "common/daemon/process/process_environment.h"
#include "common/rpc/grpc/grpc_network.h"
#include "common/rpc/methods.h"
#include "common/rpc/tls/tls_session.h"
#include "common/security/permissions.h"

namespace shoal {
namespace {

constexpr Time kTimeout = std::chrono::seconds(5);
constexpr Time kWatchInterval = std::chrono::seconds(1);
constexpr char kClearScreen[] = "\x1b[H\x1b[J";

struct StatusOptions {
  CoordinatorOption job;
  bool json = false;
  bool watch = false;
};

absl::Status Print(const proto::StatusReply& status, const StatusOptions& options) {
  if (options.watch && TerminalStyle::Detect().terminal) std::fputs(kClearScreen, stdout);
  return PrintReport(options.json ? StatusToJson(status) : FormatStatusReport(status));
}

// Prints the coordinator's status.
absl::Status AskForStatus(const StatusOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const std::string coordinator, options.job.Address());
  SHOAL_RETURN_IF_ERROR(CheckFileLimit());
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<TlsSession> tls, options.job.OpenTls());
  // In a handshake, this error would look like that of a server that cannot be reached.
  if (tls != nullptr) SHOAL_RETURN_IF_ERROR(CheckMayCall(tls->own(), kStatusMethod));
  const std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({.tls = tls});
  EventLoop* const loop = network->loop();
  absl::Status result, printed;
  bool finished = false;
  const auto on_result = [&](const absl::StatusOr<proto::StatusReply>& status) {
    result = status.ok() ? options.job.CheckLeads(coordinator, *status) : status.status();
    if (result.ok()) {
      finished = status->phase() == "finished";
      printed = Print(*status, options);
    }
    // With --watch, polling continues until the job is over and its coordinator has ended.
    if (!options.watch || !result.ok() || !printed.ok()) loop->Stop();
  };
  std::unique_ptr<StatusQuery> query;
  std::unique_ptr<StatusPoller> poller;
  if (options.watch) {
    poller =
        std::make_unique<StatusPoller>(loop, network.get(), coordinator, kWatchInterval, on_result);
  } else {
    query = std::make_unique<StatusQuery>(loop, network.get(), coordinator, kTimeout, on_result);
  }
  network->Run();
  SHOAL_RETURN_IF_ERROR(printed);
  if (options.watch && finished) return absl::OkStatus();  // its coordinator has ended
  return absl::IsUnavailable(result) ? options.job.ExplainSilence(result) : result;
}

absl::Status ShowStatus(const StatusOptions& options) {
  const absl::Status asked = AskForStatus(options);
  if (asked.ok() || !options.job.NobodyLeads(asked)) return asked;
  const std::string& run_dir = options.job.run_dir;
  if (const std::optional<proto::StatusReply> failed = ReadFailedRun(run_dir)) {
    SHOAL_RETURN_IF_ERROR(Print(*failed, options));
    // If values of the checkpoint are not finite, the cause names the checkpoint to continue from,
    // if any.
    if (options.json || !failed->last_checkpoint().not_finite().empty()) return absl::OkStatus();
    SavedSteps saved = {.total = failed->total_steps()};
    if (failed->has_last_checkpoint()) saved.checkpoint = failed->last_checkpoint().step();
    return PrintReport(absl::StrCat("\nFirst correct the cause of the error. ",
                                    AdviseToResume(saved, CommandToResume(run_dir)), "\n"));
  }
  SHOAL_ASSIGN_OR_RETURN(const std::optional<proto::StatusReply> finished,
                         ReadFinishedRun(run_dir));
  return finished.has_value() ? Print(*finished, options) : asked;
}

}  // namespace

void AddStatusCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* status =
      app->add_subcommand("status", "Show the progress of a running job, or how it ended");
  options->job.AddTo(status);
  status->add_flag("--json", options->json, "As JSON, with the fields of proto/cluster.proto");
  status->add_flag("--watch", options->watch, "Again every second, until the coordinator is gone");
  status->footer(
      "Examples:\n"
      "  shoal status runs/fashion_mnist\n"
      "  shoal status 10.0.0.1:2222\n"
      "  shoal status --run_dir runs/fashion_mnist --watch\n"
      "  shoal status --chief [::1]:2222 --json | jq .steps_done\n"
      "\nIf the job of a run directory has finished or failed, its files tell how.\n"
      "\nExit codes: 0, 65 the files of an ended job cannot be read, 78 no address found, a wrong "
      "one,\nor a certificate that may not ask, 138 no coordinator answers, and the job has "
      "neither finished nor failed.");
  status->callback(
      [options, chosen] { *chosen = [options] { return ReportStatus(ShowStatus(*options)); }; });
}

}  // namespace shoal
