#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tests/simulation/checks/trained_job.h"
#include "tests/simulation/world.h"

namespace shoal {

namespace proto {
class Applied;
class Lease;
}  // namespace proto

// Checks the bounded staleness of the steps that were leased once, while one coordinator leads the
// run from beginning to end. After a lost lease, the former holder may push the step later.
class StalenessChecks {
 public:
  // Both must outlive this.
  StalenessChecks(World* world, const TrainedJob* job) : world_(*world), job_(*job) {}

  // Call when a coordinator sends a lease.
  void OnLease(const proto::Lease& lease);
  // Call when the ps with this name sends an acknowledgement.
  void OnApplied(const std::string& ps, const proto::Applied& applied);

 private:
  World& world_;
  const TrainedJob& job_;
  std::map<std::pair<uint64_t, uint64_t>, int> leases_;  // for each timeline and step
};

}  // namespace shoal
