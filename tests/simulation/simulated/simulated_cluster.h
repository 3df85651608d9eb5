#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/security/certificate.h"
#include "tests/simulation/checks/checks.h"
#include "tests/simulation/process_files.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "tests/simulation/simulated/simulated_job.h"
#include "tests/simulation/simulated/simulated_network.h"
#include "tests/simulation/simulated/simulated_process.h"

namespace shoal {

// The tasks of a cluster, each with all processes that were started for it. A supervisor restarts a
// task if its process ends before the job does. A task may have several living processes; its
// address leads to the newest.
class SimulatedCluster {
 public:
  // All of these must outlive this. `jobs` are the first job, and the job after a kChangeJob.
  SimulatedCluster(World* world, SimulatedNetwork* network, SimulatedDisk* disk, Checks* checks,
                   std::vector<SimulatedJob> jobs);
  ~SimulatedCluster();

  void StartAll();
  // Applies the fault.
  void Strike(const Fault& fault);
  // Returns whether the coordinator has ended with OK.
  bool job_done() const { return job_done_; }
  // Returns the run directory of the current job.
  const std::string& run_dir() const { return job_->workload->run_dir; }

 private:
  struct Program;  // the code that runs in a process
  struct Coordinator;
  struct Ps;
  struct WorkerProgram;
  struct Life {
    std::unique_ptr<SimulatedProcess> process;
    std::unique_ptr<ProcessFiles> files;
    std::unique_ptr<Program> program;
  };
  struct Task {
    std::string name;
    int index = -1;                            // of a ps or worker
    std::vector<std::unique_ptr<Life>> lives;  // the last one has the address
    uint64_t starts = 0;                       // cancels restarts planned before the last start
    bool over = false;                         // its work is complete
    Life* current() const { return lives.empty() ? nullptr : lives.back().get(); }
  };

  std::optional<Certificate> CertificateFor(const Task& task) const;
  void Start(Task& task);
  std::unique_ptr<Program> MakeProgram(Task& task, Life& life);
  void StartAgainAfter(Task& task, Time pause);
  // Determines when the peers notice: at once if the kernel tells them, else after keepalive's
  // time.
  enum class Death { kKill, kExit, kPowerLoss };
  void End(Task& task, Life& life, Death death);
  // Handles a process that has ended by itself.
  void OnExit(Task& task, Life& life, const std::string& how, bool start_again);
  void Drain(Life& life);
  void Freeze(Life& life, Time duration);
  void PowerLoss(Time duration);
  void RestartAll(int ps, Time duration);
  void ChangeJob(Time duration);
  void Cut(const std::string& from, const std::string& to, Time duration);
  void DamageNewest();
  static bool AnotherLives(const Task& task, const Life& life);
  Task* Find(const std::string& name);
  void Later(Time delay, std::function<void()> what);

  World& world_;
  SimulatedNetwork& network_;
  SimulatedDisk& disk_;
  Checks& checks_;
  const std::vector<SimulatedJob> jobs_;  // the first one and its successor
  const SimulatedJob* job_;               // the current one
  const Workload& workload_;              // of the first job; the other one differs only in its job
  DiskCondition disk_condition_;
  SimulatedDisk other_disk_;  // for ps without access to the coordinator's disk
  int ps_count_;
  std::map<std::string, std::unique_ptr<Task>> tasks_;
  bool job_done_ = false;
  uint64_t damages_ = 0;
};

}  // namespace shoal
