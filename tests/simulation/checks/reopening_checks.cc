#include "tests/simulation/checks/reopening_checks.h"

#include "absl/strings/str_cat.h"
#include "proto/coordinator.pb.h"

namespace shoal {

void ReopeningChecks::OnTrain(const SimulatedProcess& process, uint64_t step, size_t chunks) {
  if (!checks() || job_.workload().job.strategy.speculate_after > 0) return;
  Training& training = training_[&process];
  const bool goes_on = training.step == step && chunks > training.chunks;
  training = {step, chunks};
  if (goes_on || begun_.insert(step).second) return;
  world_.Fail(absl::StrCat(process.name(), " computes step ", step,
                           " once more, where only certificates were replaced"));
}

void ReopeningChecks::OnReport(const proto::WorkerReport& report) {
  over_ = over_ || report.has_timeline_lost();
}

void ReopeningChecks::OnOrder(const proto::WorkerOrder& order) {
  over_ = over_ || order.has_job_done();
}

void ReopeningChecks::AfterCallback(const std::map<int, Membership::Record>& workers) {
  if (!checks()) return;
  for (const auto& [index, worker] : workers) {
    if (worker.state != Membership::Record::State::kLost) continue;
    world_.Fail(absl::StrCat("worker ", index, " counts as lost, where only certificates were ",
                             "replaced: ", worker.detail));
  }
}

}  // namespace shoal
