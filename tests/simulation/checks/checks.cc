#include "tests/simulation/checks/checks.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/rpc/methods.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"
#include "tests/simulation/checks/message_text.h"

namespace shoal {

Checks::Checks(World* world, SimulatedDisk* disk, const SimulatedJob& job)
    : world_(*world),
      disk_(*disk),
      job_(job),
      checkpoints_(world, disk, &job_),
      ps_(world, &job_, &checkpoints_),
      coordinator_(world),
      workers_(world, &job_),
      staleness_(world, &job_),
      reopening_(world, &job_),
      ending_(world, disk, &job_, &checkpoints_) {}

void Checks::Forget(const SimulatedProcess* process) {
  ps_.Forget(process);
  workers_.Forget(process);
  coordinator_.Forget(process);
}

void Checks::OnPowerLoss() {
  checkpoints_.CheckStored();
  ending_.OnPowerLoss();
}

void Checks::OnJobDone(const std::string& run_dir) {
  // The results must be durable by now.
  disk_.LosePower(&world_.random());
  OnPowerLoss();
  ending_.OnJobDone(run_dir);
}

void Checks::OnSent(SimulatedProcess& sender, const std::string& method, bool by_client,
                    const Message& message) {
  if (world_.tracing()) {
    world_.Trace(sender.name(), absl::StrCat("-> ", TextOf(method, by_client, message)));
  }
  if (method == kWorkMethod && !by_client) {
    proto::WorkerOrder order;
    ParseMessage(message, &order);
    if (order.has_lease()) staleness_.OnLease(order.lease());
    reopening_.OnOrder(order);
  } else if (method == kWorkMethod) {
    proto::WorkerReport report;
    ParseMessage(message, &report);
    reopening_.OnReport(report);
  } else if (method == kExchangeMethod && by_client) {
    proto::ExchangeRequest request;
    ParseMessage(message, &request);
    if (request.has_push()) workers_.OnPush(sender, request.push());
  } else if (method == kExchangeMethod) {
    proto::ExchangeReply reply;
    ParseMessage(message, &reply);
    if (!reply.has_applied()) return;
    ps_.OnApplied(sender, reply.applied());
    staleness_.OnApplied(sender.name(), reply.applied());
  }
}

void Checks::OnReceived(SimulatedProcess& receiver, const std::string& sender,
                        const std::string& method, bool by_client, const Message& message) {
  if (world_.tracing()) {
    world_.Trace(receiver.name(), absl::StrCat("<- ", TextOf(method, by_client, message)));
  }
  if (method == kControlMethod && by_client) {
    proto::ControlRequest request;
    ParseMessage(message, &request);
    if (request.has_stop()) ps_.OnStop(receiver);
  } else if (method == kExchangeMethod && by_client) {
    proto::ExchangeRequest request;
    ParseMessage(message, &request);
    if (request.has_push()) ps_.OnPush(receiver, request.push().timeline());
  } else if (method == kExchangeMethod) {
    proto::ExchangeReply reply;
    ParseMessage(message, &reply);
    if (reply.has_values()) workers_.OnValues(receiver, sender, reply.values());
  } else if (method == kWorkMethod && !by_client) {
    proto::WorkerOrder order;
    ParseMessage(message, &order);
    workers_.OnOrder(receiver, order);
  }
}

void Checks::OnFinished(SimulatedProcess& server, const std::string& method,
                        const absl::Status& status) {
  if (world_.tracing()) {
    world_.Trace(server.name(), absl::StrCat("ends ", method, ": ", status.ToString()));
  }
  // After a restart with another number of ps, a message of an older worker may arrive late.
  const std::vector<Fault>& faults = job_.workload().faults;
  const bool cluster_changes = std::any_of(faults.begin(), faults.end(), [](const Fault& fault) {
    return fault.kind == Fault::Kind::kRestartAll;
  });
  const bool late = cluster_changes && absl::IsFailedPrecondition(status);
  // A push was faster than the Claim with the number of examples.
  const bool early = method == kExchangeMethod && absl::IsUnavailable(status);
  if (!status.ok() && !late && !early) {
    world_.Fail(
        absl::StrCat(server.name(), " ended a stream of ", method, ": ", status.ToString()));
  }
}

}  // namespace shoal
