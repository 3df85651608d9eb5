// What a TrainingRun does for Cluster.Drain and Cluster.Checkpoint.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/printable.h"
#include "common/daemon/logging.h"
#include "coordinator/training_run.h"

namespace shoal {
namespace {

constexpr size_t kMaxRequests = 64;  // that wait for the same thing

std::string WorkerName(const Worker& worker) {
  return absl::StrCat("worker ", worker.index, " (", worker.hello.host(), ", pid ",
                      worker.hello.pid(), ")");
}

}  // namespace

void TrainingRun::OnDrainRequest(uint64_t request, const proto::DrainRequest& drain) {
  if (drain.type() == "chief") {
    if (chief_drains_.size() >= kMaxRequests) {
      return cluster_service_.Refuse(
          request, absl::ResourceExhaustedError("too many ask to drain it already"));
    }
    chief_drains_.push_back(request);
    return over_.has_value() ? AnswerChiefDrains() : Stop();
  }
  if (over_.has_value())
    return cluster_service_.Refuse(request, absl::UnavailableError("the coordinator stops"));
  if (drain.type() == "ps" && drain.index() < options_.ps_addresses.size()) {
    return cluster_service_.Refuse(
        request,
        absl::FailedPreconditionError(absl::StrCat(
            "ps ", drain.index(),
            " holds variables that nobody else has, and cannot be drained; to move it, drain the "
            "chief (a checkpoint is written), change the cluster spec and start the cluster again "
            "with the same run directory")));
  }
  std::set<int> connected;
  for (const auto& [key, worker] : membership_->workers()) {
    if (worker->index < 0) continue;  // it has not said who it is
    connected.insert(worker->index);
    if (drain.type() != "worker" || int64_t{worker->index} != int64_t{drain.index()}) continue;
    if (drains_.count(key) >= kMaxRequests) {
      return cluster_service_.Refuse(
          request, absl::ResourceExhaustedError("too many ask to drain it already"));
    }
    LogInfo("draining " + WorkerName(*worker) + ", as an operator asks");
    proto::WorkerOrder order;
    order.mutable_drain()->set_reason("drained by an operator");
    worker->Send(order);
    worker->ready = false;  // no more work for it
    membership_->record(*worker).state = Membership::Record::State::kDraining;
    drains_.emplace(key, request);
    return;
  }
  cluster_service_.Refuse(
      request, absl::NotFoundError(
                   absl::StrCat("no ", Printable(drain.type(), kMostNameBytes), " ", drain.index(),
                                " is connected; workers that are: ",
                                connected.empty() ? "none" : absl::StrJoin(connected, ", "))));
}

void TrainingRun::AnswerChiefDrains() {
  proto::DrainReply reply;
  const bool stopped = absl::IsCancelled(*over_);
  reply.set_detail(over_->ok()
                       ? "the job is done, and the coordinator with it"
                       : absl::StrCat("the coordinator has ",
                                      stopped ? "" : "failed: ", std::string(over_->message())));
  const bool in_order = over_->ok() || (stopped && !steps_lost_);
  for (const uint64_t request : std::exchange(chief_drains_, {})) {
    if (in_order) {
      cluster_service_.Answer(request, reply);
    } else {
      cluster_service_.Refuse(request, absl::UnavailableError(reply.detail()));
    }
  }
}

void TrainingRun::AnswerDrains(const Worker& worker, const std::string& why) {
  const auto [first, last] = drains_.equal_range(worker.key);
  proto::DrainReply reply;
  const bool in_order = membership_->record(worker).state == Membership::Record::State::kLeft;
  reply.set_detail(WorkerName(worker) +
                   (in_order ? " has left" : " is gone without a word: " + why));
  for (auto drain = first; drain != last; ++drain) cluster_service_.Answer(drain->second, reply);
  drains_.erase(first, last);
}

void TrainingRun::OnCheckpointRequest(uint64_t request) {
  if (over_.has_value()) {
    return cluster_service_.Refuse(request,
                                   absl::UnavailableError("no checkpoint: the coordinator stops"));
  }
  if (finishing_ && checkpointer_->last().has_value()) {  // the final one
    return AnswerCheckpoint(request, *checkpointer_->last());
  }
  if (dispatcher_ == nullptr || NothingToKeep()) {
    const std::vector<std::string> waiting = Waiting();
    return cluster_service_.Refuse(
        request, absl::UnavailableError(absl::StrCat("no steps are being done now",
                                                     waiting.empty() ? "" : ", waiting for ",
                                                     absl::StrJoin(waiting, "; "))));
  }
  if (checkpoint_requests_.size() >= kMaxRequests) {
    return cluster_service_.Refuse(
        request, absl::ResourceExhaustedError("too many ask for a checkpoint already"));
  }
  const uint64_t at_least = dispatcher_->done_below();
  checkpoint_requests_.push_back({request, opened_->timeline, at_least});
  if (checkpointer_->last().has_value()) AnswerCheckpoints(*checkpointer_->last());
  Advance();
}

void TrainingRun::ForgetRequest(uint64_t request) {
  std::erase_if(checkpoint_requests_,
                [request](const CheckpointRequest& each) { return each.request == request; });
  std::erase_if(drains_, [request](const auto& drain) { return drain.second == request; });
  std::erase(chief_drains_, request);
}

bool TrainingRun::StoredCutAt(uint64_t step) const {
  return checkpointer_->last().has_value() && checkpointer_->last()->manifest.cut_step == step &&
         checkpointer_->last()->manifest.timeline == opened_->timeline;
}

void TrainingRun::AnswerCheckpoint(uint64_t request, const StoredCheckpoint& checkpoint) {
  proto::CheckpointReply reply;
  reply.set_directory(checkpoint.directory);
  reply.set_step(checkpoint.manifest.cut_step);
  cluster_service_.Answer(request, reply);
}

void TrainingRun::AnswerCheckpoints(const StoredCheckpoint& checkpoint) {
  std::erase_if(checkpoint_requests_, [&](const CheckpointRequest& each) {
    if (checkpoint.manifest.timeline != each.timeline ||
        checkpoint.manifest.cut_step < each.at_least) {
      return false;
    }
    AnswerCheckpoint(each.request, checkpoint);
    return true;
  });
}

void TrainingRun::RefuseCheckpoints(const std::string& why) {
  for (const CheckpointRequest& each : std::exchange(checkpoint_requests_, {})) {
    cluster_service_.Refuse(each.request, absl::UnavailableError("no checkpoint: " + why));
  }
}

}  // namespace shoal
