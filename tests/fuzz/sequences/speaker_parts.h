#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/step_plan/round.h"
#include "proto/parameter_server.pb.h"
#include "tests/fuzz/sequences/fuzz_cluster.h"

// Parts of the messages of several speakers.
namespace shoal {

using ProtoPtr = std::unique_ptr<google::protobuf::Message>;

// A speaker forgets requests beyond this many.
inline constexpr size_t kMaxRequests = 1000;

// Fills in the round of a step. Requires a job with rounds.
inline void FillRound(const FuzzJob& job, uint64_t step, proto::Round* round) {
  const Round of = job.rounds()->Of(step);
  round->set_first(of.first);
  round->set_count(of.count);
  round->set_number(of.number);
}

// Fills in a coordinator of the cluster's run.
inline void FillClaimant(proto::Claimant* claimant) {
  claimant->set_run_id(FuzzCluster::kRunDirectory);
  claimant->set_run_directory(FuzzCluster::kRunDirectory);
  claimant->set_address("elsewhere:1");
  claimant->set_host("elsewhere");
  claimant->set_pid(1);
}

}  // namespace shoal
