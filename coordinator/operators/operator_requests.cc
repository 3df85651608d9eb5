#include "coordinator/operators/operator_requests.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/text/printable.h"
#include "common/log/logging.h"

namespace shoal {
namespace {

constexpr size_t kMaxRequests = 64;  // max requests that wait for the same event

std::string WorkerName(const Worker& worker) {
  return absl::StrCat("worker ", worker.index, " (", worker.hello.host(), ", pid ",
                      worker.hello.pid(), ")");
}

}  // namespace

OperatorRequests::OperatorRequests(Options options)
    : options_(std::move(options)),
      service_({.status = options_.status,
                .on_drain = [this](uint64_t request,
                                   const proto::DrainRequest& drain) { OnDrain(request, drain); },
                .on_checkpoint = [this](uint64_t request) { OnCheckpoint(request); },
                .on_gone = [this](uint64_t request) { Forget(request); }}) {}

absl::StatusOr<StreamCallbacks> OperatorRequests::Accept(const std::string& method,
                                                         std::unique_ptr<Stream> stream) {
  return service_.Accept(method, std::move(stream));
}

void OperatorRequests::OnDrain(uint64_t request, const proto::DrainRequest& drain) {
  if (drain.type() == "chief") return DrainCoordinator(request);
  if (drained_.has_value())
    return service_.Reject(request, absl::UnavailableError("the coordinator stops"));
  if (drain.type() == "evaluator") {
    return service_.Reject(request,
                           absl::FailedPreconditionError(
                               "an evaluator has nothing to drain: send its process SIGTERM, "
                               "and start another one where you want it"));
  }
  if (drain.type() == "ps" && int64_t{drain.index()} < options_.ps_count) {
    return service_.Reject(
        request,
        absl::FailedPreconditionError(absl::StrCat(
            "ps ", drain.index(),
            " cannot be drained: no other ps has its variables. To move it, run `shoal drain "
            "chief`, which writes a checkpoint; change the cluster spec, and start the cluster "
            "again with the same run directory")));
  }
  std::set<int> connected;
  for (const auto& [key, worker] : options_.membership->workers()) {
    connected.insert(worker->index);
    if (drain.type() != "worker" || int64_t{worker->index} != int64_t{drain.index()}) continue;
    if (drains_.count(key) >= kMaxRequests) {
      return service_.Reject(
          request, absl::ResourceExhaustedError(absl::StrCat(
                       kMaxRequests, " requests (the max) wait for this drain; try again later")));
    }
    LogInfo("draining " + WorkerName(*worker) + " for an operator");
    proto::WorkerOrder order;
    order.mutable_drain()->set_reason("an operator drains this worker");
    worker->Send(order);
    worker->ready = false;  // no more work for it
    options_.membership->record(*worker).state = Membership::Record::State::kDraining;
    drains_.emplace(key, request);
    return;
  }
  service_.Reject(request, absl::NotFoundError(absl::StrCat(
                               "no ", Printable(drain.type(), kMaxNameBytes), " ", drain.index(),
                               " is connected; connected workers: ",
                               connected.empty() ? "none" : absl::StrJoin(connected, ", "))));
}

void OperatorRequests::DrainCoordinator(uint64_t request) {
  if (coordinator_drains_.size() >= kMaxRequests) {
    return service_.Reject(
        request, absl::ResourceExhaustedError(absl::StrCat(
                     kMaxRequests, " requests (the max) wait for this drain; try again later")));
  }
  coordinator_drains_.push_back(request);
  return drained_.has_value() ? AnswerCoordinatorDrains() : options_.stop();
}

void OperatorRequests::OnOver(const absl::Status& status, bool kept) {
  RejectCheckpoints("the coordinator stops");
  const bool stopped = absl::IsCancelled(status);
  const std::string detail =
      status.ok() ? "the job is done, and the coordinator has ended"
                  : absl::StrCat("the coordinator has ",
                                 stopped ? "" : "failed: ", std::string(status.message()));
  if (status.ok() || (stopped && kept)) {
    proto::DrainReply reply;
    reply.set_detail(detail);
    drained_ = std::move(reply);
  } else {
    drained_ = absl::UnavailableError(detail);
  }
  AnswerCoordinatorDrains();
}

void OperatorRequests::AnswerCoordinatorDrains() {
  for (const uint64_t request : std::exchange(coordinator_drains_, {})) {
    if (drained_->ok()) {
      service_.Answer(request, **drained_);
    } else {
      service_.Reject(request, drained_->status());
    }
  }
}

void OperatorRequests::OnWorkerGone(const Worker& worker, const std::string& why) {
  const auto [first, last] = drains_.equal_range(worker.key);
  proto::DrainReply reply;
  const bool in_order =
      options_.membership->record(worker).state == Membership::Record::State::kLeft;
  reply.set_detail(WorkerName(worker) +
                   (in_order ? " has left" : " has disconnected without leaving: " + why));
  for (auto drain = first; drain != last; ++drain) service_.Answer(drain->second, reply);
  drains_.erase(first, last);
}

void OperatorRequests::OnCheckpoint(uint64_t request) {
  if (checkpoints_.size() + new_checkpoints_.size() >= kMaxRequests) {
    return service_.Reject(
        request, absl::ResourceExhaustedError(absl::StrCat(
                     kMaxRequests, " requests (the max) wait for a checkpoint; try again later")));
  }
  new_checkpoints_.push_back(request);
  options_.wakeup->Raise();
}

void OperatorRequests::AdmitCheckpoints() {
  for (const uint64_t request : std::exchange(new_checkpoints_, {})) {
    const absl::StatusOr<Wanted> wanted = options_.wanted_now();
    if (!wanted.ok()) {
      service_.Reject(request, wanted.status());
    } else {
      checkpoints_.push_back({request, *wanted});
      if (options_.newest->has_value()) OnCommitted(**options_.newest);
    }
  }
}

void OperatorRequests::OnCommitted(const StoredCheckpoint& checkpoint) {
  std::erase_if(checkpoints_, [&](const Checkpoint& each) {
    if (checkpoint.manifest.timeline != each.wanted.timeline ||
        checkpoint.manifest.cut_step < each.wanted.at_least) {
      return false;
    }
    proto::CheckpointReply reply;
    reply.set_directory(checkpoint.directory);
    reply.set_step(checkpoint.manifest.cut_step);
    service_.Answer(each.request, reply);
    return true;
  });
}

void OperatorRequests::RejectCheckpoints(const std::string& why) {
  for (const Checkpoint& each : std::exchange(checkpoints_, {})) {
    service_.Reject(each.request, absl::UnavailableError("no checkpoint: " + why));
  }
}

void OperatorRequests::Forget(uint64_t request) {
  std::erase(new_checkpoints_, request);
  std::erase_if(checkpoints_,
                [request](const Checkpoint& each) { return each.request == request; });
  std::erase_if(drains_, [request](const auto& drain) { return drain.second == request; });
  std::erase(coordinator_drains_, request);
}

}  // namespace shoal
