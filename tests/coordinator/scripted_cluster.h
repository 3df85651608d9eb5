#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/training_run.h"
#include "tests/cluster/small_job.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {

// A ps that keeps the rules of the protocol towards a coordinator, without variables: it knows
// which steps are applied, and writes one value everywhere. What it should do otherwise goes into
// the fields.
class ScriptedPs {
 public:
  ScriptedPs(FakeNetwork* network, std::string address, const CheckpointLayout* layout,
             uint32_t job_fingerprint, uint32_t shard_map_fingerprint)
      : network_(network),
        address_(std::move(address)),
        layout_(layout),
        job_fingerprint_(job_fingerprint),
        shard_map_fingerprint_(shard_map_fingerprint) {}

  // Answers what has come; false when there was nothing.
  bool Serve();
  // As after kill -9 and a new start.
  void Restart();
  // As after SIGTERM.
  void Leave();
  void SendStopping();
  // Of `fences`.
  std::vector<uint64_t> CutSteps() const {
    std::vector<uint64_t> steps;
    for (const proto::Fence& fence : fences) steps.push_back(fence.cut_step());
    return steps;
  }

  bool lied_about = false;  // somebody else answers in its name, too
  float value = 0;          // that it writes
  bool accepts_fences = true;
  std::optional<uint64_t> refuses_fences_with;  // as the highest step applied
  uint64_t fences_heard = 0;                    // counting repetitions
  uint64_t fences_refused = 0;
  bool writes = true;       // what is ready; nothing becomes of it else
  std::string write_error;  // of the next cuts
  bool answers_claims = true;
  bool answers_loads = true;
  bool answers_stop = true;
  // It keeps what it has in of a round until that is whole.
  std::optional<RoundPlan> rounds;
  uint64_t incarnation = 1;
  uint64_t promised = 0;
  uint64_t timeline = 0;
  std::set<uint64_t> applied;
  uint64_t applied_chunks = 0;  // that it says
  // As the first Claim of its timeline has told it; 0: none has.
  uint64_t training_examples = 0;
  std::optional<uint64_t> updates;  // that it says a chunk has had, until it is loaded
  std::vector<proto::Load> loads;
  std::vector<proto::Fence> fences;  // accepted, not counting repetitions
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

// A worker that does what the test tells it.
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
  // Takes orders; false when there were none.
  bool Read();
  // Reports a step, of so many examples with `loss` and accuracy 0.5 each.
  void Report(uint64_t step, uint32_t examples);
  // Of as many as it has.
  void Report(uint64_t step) { Report(step, static_cast<uint32_t>(plan->Range(step).count)); }
  // As one that was in everywhere before.
  void ReportWasIn(uint64_t step);
  // Reports the batch of the oldest evaluation order: its examples, `test_loss`, accuracy 0.25.
  void Evaluate();
  void Leave(const std::string& reason);
  void SendDraining();
  // As every 5 s while a step takes long.
  void SendComputing();
  FarEnd& stream() { return *stream_; }

  std::optional<StepPlan> plan;          // of the job
  std::optional<StepPlan> test_batches;  // none: it has no test set
  double loss = 1;
  double test_loss = 3;
  bool welcomed = false;
  uint32_t job_fingerprint = 0;  // of the job of the Welcome; what SendReady says
  uint64_t timeline = 0;
  std::deque<uint64_t> leases;      // not reported yet
  std::set<uint64_t> leased;        // ever, in this timeline
  proto::Round round;               // of the newest lease
  std::vector<uint64_t> timelines;  // as they were opened
  std::deque<proto::Evaluate> evaluations;
  std::string rejected;
  bool of_another_job = false;  // and that is why
  // What it answers to Halt: none: it has begun all that it holds.
  std::optional<uint64_t> begun_below;
  bool answers_halt = true;
  bool halted = false;
  bool job_done = false;
  std::string job_failure;  // then
  std::string drained;      // why it is to leave

 private:
  const std::shared_ptr<FarEnd> stream_;
  uint64_t held_below_ = 0;  // by its hello
};

// A TrainingRun on a fake loop, between scripted ps and workers. 13 steps make an epoch.
class ScriptedCluster {
 public:
  static constexpr uint64_t kExamples = 200;
  struct Options {
    int ps = 1;
    int workers = 3;  // listed
    uint64_t test_examples = 0;
    std::string callbacks = "[]";
    std::string checkpoint = "{}";
    std::string strategy = R"({"name": "async", "min_shard_bytes": 256, "chunk_bytes": 1024})";
    // Under sync, of so many gradients an update; 0: as many as workers are listed.
    std::optional<uint64_t> rounds_of;
    int epochs = 2;
    int steps = 0;          // instead of epochs
    std::string directory;  // a new one if empty
    uint64_t ps_incarnation = 1;
    bool others_live = false;  // else every other coordinator is known to be gone
  };
  explicit ScriptedCluster(Options options);

  // A new coordinator, in the place of the former one, whose streams break.
  void StartCoordinator();
  // Everything that follows without the clock moving.
  void Settle();
  void Advance(Time time);
  ScriptedWorker& Connect(const ScriptedWorker::Hello& hello);
  // The same, and it gets ready.
  ScriptedWorker& Join(const ScriptedWorker::Hello& hello);
  ScriptedWorker& Join(uint32_t index) {
    return Join({.index = index, .incarnation = index + uint64_t{1}});
  }
  // As one that sees these numbers of examples.
  void SendReady(ScriptedWorker& worker, uint64_t training_examples, uint64_t test_examples);
  // The worker's oldest lease is computed, applied on every ps and reported.
  void FinishStep(ScriptedWorker& worker);
  // All leases of a worker, and those that follow, until it has none.
  void FinishAll(ScriptedWorker& worker);
  void Disconnect(ScriptedWorker& worker);
  std::vector<uint64_t> StoredSteps() const;
  // What the coordinator's status says of a worker.
  proto::TaskStatus WorkerStatus(uint32_t index) const;
  uint32_t shard_map_fingerprint() const { return shard_map_fingerprint_; }
  std::string run_dir() const { return options_.directory + "/run"; }

  const TemporaryDirectory directory;  // of options_, unless another was given
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
