#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// The errors that end a takeover. Each message names the ps or the other coordinator, both values
// that differ, and the next command to type. `ps`: as DescribePs names it.

// Returns "the coordinator at HOST:PORT (...)".
std::string DescribeClaimant(const proto::Claimant& claimant);

// Returns "ps 1 at HOST:PORT".
std::string DescribePs(int ps, const std::string& address);

// kFailedPrecondition: the ps holds the variables of another job. `job`: the fingerprint of ours.
absl::Status PsOfAnotherJob(const std::string& ps, const proto::Claimed& claimed, uint32_t job);
struct PromisedTerm {
  uint64_t promised = 0;
  uint64_t highest = 0;  // that a coordinator of this job has reached
};
// kFailedPrecondition: no coordinator of this job can have reached the promised term.
absl::Status PsWithImplausibleTerm(const std::string& ps, const PromisedTerm& term);
// kFailedPrecondition: the coordinator of another run trains with the ps.
absl::Status PsInUse(const std::string& ps, const proto::Claimant& holder);
struct NewerTerm {
  uint64_t promised = 0;
  uint64_t own = 0;  // of this coordinator
};
// kAborted: another coordinator has a newer term.
absl::Status FencedOff(const NewerTerm& term, const proto::Claimant& by);

}  // namespace shoal
