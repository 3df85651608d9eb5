#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/checks.h"
#include "tests/simulation/process_files.h"
#include "tests/simulation/simulated_disk.h"
#include "tests/simulation/simulated_job.h"
#include "tests/simulation/simulated_network.h"
#include "tests/simulation/simulated_process.h"

namespace shoal {

// The tasks of a cluster, each with the processes that were started for it, and a supervisor that
// starts a task again when its process has ended before the job has. A task may have several
// processes that live; its address leads to the newest.
class SimulatedCluster {
 public:
  // These outlive this. `jobs`: the one to begin with, and the one of a kChangeJob.
  SimulatedCluster(World* world, SimulatedNetwork* network, SimulatedDisk* disk, Checks* checks,
                   std::vector<SimulatedJob> jobs);
  ~SimulatedCluster();

  void StartAll();
  // Does what the fault says.
  void Strike(const Fault& fault);
  // The coordinator has ended with OK.
  bool job_done() const { return job_done_; }
  // Of the job that is trained now.
  const std::string& run_dir() const { return job_->workload->run_dir; }

 private:
  struct Program;  // what runs in a process
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
    uint64_t starts = 0;                       // numbers what would start it again
    bool over = false;                         // it has done its part
    Life* current() const { return lives.empty() ? nullptr : lives.back().get(); }
  };

  void Start(Task& task);
  std::unique_ptr<Program> MakeProgram(Task& task, Life& life);
  void StartAgainAfter(Task& task, Time pause);
  // How long peers take to notice: at once when the kernel tells them, or keepalive's time.
  enum class Death { kKill, kExit, kPowerLoss };
  void End(Task& task, Life& life, Death death);
  // The process has ended by itself.
  void OnExit(Task& task, Life& life, const std::string& how, bool start_again);
  void Drain(Life& life);
  void Freeze(Life& life, Time duration);
  void PowerLoss(Time duration);
  void RestartAll(int ps, Time duration);
  void ChangeJob(Time duration);
  void Cut(const std::string& from, const std::string& to, Time duration);
  void DamageNewest();
  static bool AnotherLives(const Task& task, const Life& life);
  void AfterCallback(SimulatedProcess& process);
  Task* Find(const std::string& name);
  void Later(Time delay, std::function<void()> what);

  World& world_;
  SimulatedNetwork& network_;
  SimulatedDisk& disk_;
  Checks& checks_;
  const std::vector<SimulatedJob> jobs_;  // the one to begin with, and the one that follows it
  const SimulatedJob* job_;               // that is trained now
  const Workload& workload_;              // of the first: all but the job is the same in both
  DiskCondition disk_condition_;
  SimulatedDisk other_disk_;  // of the ps that do not see the coordinator's
  int ps_count_;
  std::map<std::string, std::unique_ptr<Task>> tasks_;
  bool job_done_ = false;
  uint64_t damages_ = 0;
};

}  // namespace shoal
