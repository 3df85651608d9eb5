#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "cli/commands/command.h"
#include "cli/coordinator_calls/ask_coordinator.h"
#include "cli/flags/coordinator_option.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_spec.h"
#include "common/rpc/network.h"
#include "proto/cluster.pb.h"

namespace shoal {
namespace {

// A worker leaves within 10 s.
constexpr Time kWorkerTimeout = std::chrono::seconds(15);
// The coordinator waits for the tasks that still work. Meanwhile the command prints what it waits
// for.
constexpr Time kCoordinatorTimeout = std::chrono::hours(1);

struct DrainOptions {
  CoordinatorOption job;
  std::string task;
};

absl::Status Drain(const DrainOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const TaskId task, ParseTaskName(options.task));
  SHOAL_ASSIGN_OR_RETURN(const std::string coordinator, options.job.LeaderAddress());
  proto::DrainRequest request;
  request.set_type(TaskTypeName(task.type));
  request.set_index(task.index);
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<TlsSession> tls, options.job.OpenTls());
  proto::DrainReply reply;
  const Time timeout = task.type == TaskType::kChief ? kCoordinatorTimeout : kWorkerTimeout;
  SHOAL_RETURN_IF_ERROR(AskCoordinator(coordinator, kDrainMethod, request, timeout, tls, &reply));
  return PrintReport(reply.detail() + "\n");
}

}  // namespace

void AddDrainCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<DrainOptions>();
  CLI::App* drain = app->add_subcommand("drain", "Make a task of a running job leave in order");
  drain->add_option("TASK", options->task, "worker:INDEX, or chief")->required();
  options->job.AddTo(drain);
  drain->footer(
      "A worker finishes the steps it holds and exits with 143; the others continue.\n"
      "The coordinator writes a checkpoint and stops, as after SIGTERM. The command prints the\n"
      "checkpoint's directory, or why there is none. A ps cannot be drained.\n"
      "\nExamples:\n"
      "  shoal drain worker:1 10.0.0.1:2222\n"
      "  shoal drain chief runs/fashion_mnist\n"
      "\nExit codes: 0 it has left, 78 it cannot be drained, or there is no address, 138 no "
      "answer,\nor the coordinator has stopped without a checkpoint of the last steps.");
  drain->callback(
      [options, chosen] { *chosen = [options] { return ReportStatus(Drain(*options)); }; });
}

}  // namespace shoal
