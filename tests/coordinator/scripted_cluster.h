#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/training_run.h"
#include "tests/cluster/in_process/small_job.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {

// The steps of an epoch of the cluster's job.
inline constexpr uint64_t kEpochSteps = 13;

// A ps without variables that follows the protocol with a coordinator: it tracks the applied steps
// and writes the same value everywhere. The fields change its behaviour.
class ScriptedPs {
 public:
  ScriptedPs(FakeNetwork* network, std::string address, const CheckpointLayout* layout,
             uint32_t job_fingerprint, uint32_t shard_map_fingerprint)
      : network_(network),
        address_(std::move(address)),
        layout_(layout),
        job_fingerprint_(job_fingerprint),
        shard_map_fingerprint_(shard_map_fingerprint) {}

  // Answers the pending requests. Returns false if there are none.
  bool Serve();
  // Acts like kill -9 and a restart.
  void Restart();
  // Acts like SIGTERM.
  void Leave();
  void SendStopping();
  // Returns the cut steps of `fences`.
  std::vector<uint64_t> CutSteps() const {
    std::vector<uint64_t> steps;
    for (const proto::Fence& fence : fences) steps.push_back(fence.cut_step());
    return steps;
  }

  bool lied_about = false;  // another process also answers under its name
  bool superseded = false;  // another process has fenced far ahead under the term of its timeline
  float value = 0;          // the value that it writes
  bool accepts_fences = true;
  std::optional<uint64_t> rejects_fences_with;  // reported as the highest applied step
  uint64_t fences_heard = 0;                    // including repetitions
  uint64_t fences_rejected = 0;
  bool writes = true;       // false: never writes a ready cut
  std::string write_error;  // for the next cuts
  bool answers_claims = true;
  bool answers_loads = true;
  bool answers_stop = true;
  // If set, applies the steps of a round only once the round is complete.
  std::optional<RoundPlan> rounds;
  uint64_t incarnation = 1;
  uint64_t promised = 0;
  uint64_t timeline = 0;
  std::set<uint64_t> applied;
  uint64_t applied_chunks = 0;  // the number that it reports
  // From the first Claim of its timeline; 0: unknown.
  uint64_t training_examples = 0;
  std::optional<uint64_t> updates;  // reported updates of a chunk until a load
  std::vector<proto::Load> loads;
  std::vector<proto::Fence> fences;  // accepted ones, without repetitions
  std::vector<uint64_t> fence_terms;
  std::vector<uint64_t> released;
  bool stopped = false;

 private:
  struct Cut {
    uint64_t term = 0;
    proto::Fence fence;
    bool accepted = false;
    bool ready = false;
    std::optional<proto::Written> written;
  };
  uint64_t base() const;
  uint64_t whole_below() const;  // the version of its chunks, in steps
  void OnRequest(FarEnd& stream, const proto::ControlRequest& request);
  void OnFence(FarEnd& stream, uint64_t term, const proto::Fence& fence);
  bool AdvanceCut(FarEnd& stream);

  FakeNetwork* const network_;
  const std::string address_;
  const CheckpointLayout* const layout_;
  const uint32_t job_fingerprint_;
  const uint32_t shard_map_fingerprint_;
  const FarEnd* greeted_ = nullptr;
  std::optional<Cut> cut_;
};

// A worker that the test controls.
class ScriptedWorker {
 public:
  explicit ScriptedWorker(std::shared_ptr<FarEnd> stream) : stream_(std::move(stream)) {}

  struct Hello {
    uint32_t index = 0;
    uint64_t incarnation = 1;
    uint64_t timeline = 0;
    std::vector<uint64_t> held_steps = {};
  };
  void SendHello(const Hello& hello);
  void SendReady(uint64_t training_examples, uint64_t test_examples, uint32_t shard_map);
  // Reads orders. Returns false if there are none.
  bool Read();
  // Reports a step with this many examples; each has `loss` and accuracy 0.5.
  void Report(uint64_t step, uint32_t examples);
  // The same, with the number of examples that the step has.
  void Report(uint64_t step) { Report(step, static_cast<uint32_t>(plan->Range(step).count)); }
  // Reports a step that every ps had already applied.
  void ReportAlreadyApplied(uint64_t step);
  // Reports the batch of the oldest evaluation order: its examples, `test_loss`, accuracy 0.25.
  void Evaluate();
  void Leave(const std::string& reason);
  void SendDraining();
  // Acts like a worker in a long step, which sends this every 5 s.
  void SendComputing();
  FarEnd& stream() { return *stream_; }

  std::optional<StepPlan> plan;          // of the job
  std::optional<StepPlan> test_batches;  // absent: it has no test set
  double loss = 1;
  double test_loss = 3;
  bool welcomed = false;
  uint32_t job_fingerprint = 0;  // of the Welcome's job; sent by SendReady
  uint64_t timeline = 0;
  std::deque<uint64_t> leases;      // not yet reported
  std::set<uint64_t> leased;        // all in this timeline
  proto::Round round;               // of the newest lease
  std::vector<uint64_t> timelines;  // in the order of opening
  std::deque<proto::Evaluate> evaluations;
  std::string rejected;
  bool of_another_job = false;  // the reason for the rejection
  // Its answer to Halt. Absent: it has begun all its leases.
  std::optional<uint64_t> begun_below;
  bool answers_halt = true;
  bool halted = false;
  bool job_done = false;
  std::string job_failure;  // set together with job_done
  std::string drained;      // the reason why it must leave

 private:
  const std::shared_ptr<FarEnd> stream_;
  uint64_t held_below_ = 0;  // from its hello
};

// A TrainingRun on a fake loop, between scripted ps and workers. An epoch has 13 steps.
class ScriptedCluster {
 public:
  static constexpr uint64_t kExamples = 200;
  struct Options {
    int ps = 1;
    int workers = 3;  // number in the cluster spec
    uint64_t test_examples = 0;
    std::string callbacks = "[]";
    std::string checkpoint = "{}";
    std::string strategy = R"({"name": "async", "min_shard_bytes": 256, "chunk_bytes": 1024})";
    // Makes the strategy sync, with this many gradients per update; 0: one per listed worker.
    std::optional<uint64_t> rounds_of;
    int epochs = 2;
    int steps = 0;          // instead of epochs
    std::string directory;  // empty: a new one
    uint64_t ps_incarnation = 1;
    bool others_live = false;  // false: all other coordinators are known to be gone
  };
  explicit ScriptedCluster(Options options);

  // Replaces the coordinator by a new one; the streams of the former one break.
  void StartCoordinator();
  // Runs everything that follows without moving the clock.
  void Settle();
  void Advance(Time time);
  ScriptedWorker& Connect(const ScriptedWorker::Hello& hello);
  // The same, and sends its Ready.
  ScriptedWorker& Join(const ScriptedWorker::Hello& hello);
  ScriptedWorker& Join(uint32_t index) {
    return Join({.index = index, .incarnation = index + uint64_t{1}});
  }
  // Sends the Ready of a worker that finds these numbers of examples.
  void SendReady(ScriptedWorker& worker, uint64_t training_examples, uint64_t test_examples);
  // Computes the worker's oldest lease, applies it on every ps and reports it.
  void FinishStep(ScriptedWorker& worker);
  // Finishes all leases of a worker, including the ones that follow.
  void FinishAll(ScriptedWorker& worker);
  void Disconnect(ScriptedWorker& worker);
  std::vector<uint64_t> StoredSteps() const;
  // Returns a worker's part of the coordinator's status.
  proto::TaskStatus WorkerStatus(uint32_t index) const;
  uint32_t shard_map_fingerprint() const { return shard_map_fingerprint_; }
  std::string run_dir() const { return options_.directory + "/run"; }

  const TemporaryDirectory directory;  // default of options_.directory
  FakeLoop loop;
  FakeNetwork network{&loop};
  std::vector<std::unique_ptr<ScriptedPs>> ps;
  std::unique_ptr<TrainingRun> run;
  std::optional<absl::Status> over;

 private:
  Options options_;
  Job job_;
  CheckpointLayout layout_;
  uint32_t shard_map_fingerprint_ = 0;
  std::vector<std::unique_ptr<ScriptedWorker>> workers_;
  uint32_t coordinators_ = 0;
};

}  // namespace shoal
