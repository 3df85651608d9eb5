#include "tests/simulation/checks/worker_checks.h"

#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"
#include "tests/simulation/expected_sums.h"

namespace shoal {

void WorkerChecks::Forget(const SimulatedProcess* process) {
  origins_.erase(process);
  jobs_.erase(process);
}

void WorkerChecks::OnTrain(const SimulatedProcess& process, uint64_t step, size_t chunks) {
  Origin& origin = origins_[&process];
  origin.timeline = origin.announced;
  origin.step = step;
  if (origin.fresh.size() >= chunks) return;
  world_.Fail(absl::StrCat(process.name(), " trains on parameters of which only ",
                           origin.fresh.size(), " of ", chunks, " chunks are of timeline ",
                           TermText(origin.timeline)));
}

uint64_t WorkerChecks::OnEvaluate(const SimulatedJob& job, std::span<const float> parameters) {
  const ExpectedSums& sums = *job.sums;
  const std::vector<Variable>& variables = sums.variables();
  // The cuts whose sums the parameters have.
  std::set<uint64_t> cuts;
  for (uint64_t cut = 0; cut <= job.workload->plan().total_steps(); ++cut) cuts.insert(cut);
  for (size_t v = 0; v < variables.size(); ++v) {
    if (job_.sums_in_slot() && variables[v].has_slots()) continue;
    const ModelLayout::Extent& extent = sums.layout().variables[v];
    for (int64_t i = 0; i < extent.size; ++i) {
      std::erase_if(cuts, [&](uint64_t cut) {
        return sums.Below(cut, static_cast<int>(v), i) != parameters[extent.offset + i];
      });
    }
  }
  if (cuts.empty()) world_.Fail("an evaluation is of parameters that are no cut");
  return cuts.empty() ? 0 : *cuts.begin();
}

void WorkerChecks::OnOrder(const SimulatedProcess& process, const proto::WorkerOrder& order) {
  if (order.has_lease()) CheckJob(process, order.lease().timeline(), "is leased steps");
  Origin& origin = origins_[&process];
  if (!order.has_timeline_opened() || order.timeline_opened().timeline() == origin.announced) {
    return;
  }
  origin.announced = order.timeline_opened().timeline();
  origin.fresh.clear();
}

void WorkerChecks::OnValues(const SimulatedProcess& process, const std::string& ps,
                            const proto::ChunkValues& values) {
  if (values.cut_step() != 0) return;
  Origin& origin = origins_[&process];
  if (values.timeline() != origin.announced) return;
  origin.fresh.insert({ps, values.chunk()});
}

void WorkerChecks::OnPush(const SimulatedProcess& process, const proto::Push& push) {
  CheckJob(process, push.timeline(), "pushes a step");
  CheckRound(process, push);
  const Origin& origin = origins_[&process];
  if (origin.timeline != push.timeline() || origin.step != push.step()) {
    world_.Fail(absl::StrCat(process.name(), " pushes step ", push.step(), " of timeline ",
                             TermText(push.timeline()), " with the gradient of step ", origin.step,
                             " of timeline ", TermText(origin.timeline)));
  }
  if (push.skip() != jobs_[&process].sums->Overflows(push.step())) {
    world_.Fail(absl::StrCat(process.name(), " pushes ",
                             push.skip() ? "a skip" : "a gradient that overflows", " for step ",
                             push.step()));
  }
}

void WorkerChecks::CheckJob(const SimulatedProcess& process, uint64_t timeline,
                            const std::string& does) {
  const Workload* const of_timeline = job_.JobOf(timeline);
  if (of_timeline == nullptr || of_timeline == jobs_[&process].workload) return;
  world_.Fail(absl::StrCat(process.name(), " ", does, " of timeline ", TermText(timeline),
                           ", and computes another job"));
}

void WorkerChecks::CheckRound(const SimulatedProcess& process, const proto::Push& push) {
  const std::optional<RoundPlan>& rounds = job_.rounds();
  if (rounds.has_value() != push.has_round())
    return world_.Fail(process.name() +
                       " pushes a round without a plan of rounds, or none with one");
  if (!rounds.has_value()) return;
  const Round expected = rounds->Of(push.step());
  const Round round = {.first = push.round().first(),
                       .count = push.round().count(),
                       .number = push.round().number()};
  if (round == expected && push.pulled_version() == expected.first) return;
  world_.Fail(absl::StrCat(process.name(), " pushes step ", push.step(), " of version ",
                           push.pulled_version(), " in round ", round.number, ", steps ",
                           round.first, " to ", round.end(), ", where that is round ",
                           expected.number, ", steps ", expected.first, " to ", expected.end()));
}

}  // namespace shoal
