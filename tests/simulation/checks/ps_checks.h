#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "ps/parameter_server.h"
#include "tests/simulation/checks/checkpoint_checks.h"
#include "tests/simulation/checks/chunk_checks.h"
#include "tests/simulation/checks/trained_job.h"
#include "tests/simulation/simulated/simulated_process.h"
#include "tests/simulation/world.h"

namespace shoal {

namespace proto {
class Applied;
}  // namespace proto

// Checks the promises of each ps: its terms and timelines only rise, it loses no step, applies only
// pushes of its timeline, and acknowledges only what it has applied.
class PsChecks {
 public:
  // All of these must outlive this.
  PsChecks(World* world, TrainedJob* job, const CheckpointChecks* checkpoints)
      : world_(*world), job_(*job), checkpoints_(*checkpoints), chunks_(world, job) {}

  // Call when a ps starts in a process. It must live until Forget.
  void Register(const SimulatedProcess* process, int index, const ParameterServer* server) {
    lives_[process] = {.index = index, .server = server};
  }
  void Forget(const SimulatedProcess* process) { lives_.erase(process); }

  // Call after each callback of a registered ps.
  void AfterCallback(const SimulatedProcess& process);
  // Call when a ps receives a push of this timeline.
  void OnPush(const SimulatedProcess& process, uint64_t timeline) {
    lives_[&process].pushed = timeline;
  }
  // Call when a ps receives a Stop.
  void OnStop(const SimulatedProcess& process) { lives_[&process].may_go = true; }
  // Call when a ps sends an acknowledgement.
  void OnApplied(const SimulatedProcess& process, const proto::Applied& applied);
  // Call when a ps that was sent SIGTERM leaves.
  void OnLeft(const SimulatedProcess& process);

 private:
  struct SeenChunk {
    uint64_t version = 0;
    uint64_t base = 0;
    uint64_t count = 0;
  };
  // The observations of one life of a ps.
  struct Life {
    int index = 0;
    const ParameterServer* server = nullptr;
    uint64_t promised_term = 0;
    uint64_t timeline = 0;
    std::vector<SeenChunk> chunks;
    uint64_t pushed = 0;  // timeline of the current push
    bool may_go = false;  // a Stop has arrived
  };
  // Checks the timeline that a ps has just loaded, and all its chunks.
  void CheckLoaded(const SimulatedProcess& process, Life& life);
  // Checks the chunks that have changed since the last callback. `pushed` is the timeline of the
  // push that the ps got in this one.
  void CheckUpdated(const SimulatedProcess& process, Life& life, uint64_t pushed);

  World& world_;
  TrainedJob& job_;
  const CheckpointChecks& checkpoints_;
  const ChunkChecks chunks_;
  std::map<const SimulatedProcess*, Life> lives_;
  // For each ps index: the timelines that it has opened in any life.
  std::map<int, std::set<uint64_t>> opened_;
};

}  // namespace shoal
