#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/mutex.h"
#include "worker/compute/graph_runner.h"

namespace shoal {

// A GraphRunner on a thread of its own, which makes it, runs it and takes it down: a GPU is the
// current one of a thread, and the threads that a CPU computes with are a thread's. One caller at a
// time.
class Replica {
 public:
  using Create = std::function<absl::StatusOr<std::unique_ptr<GraphRunner>>()>;

  // Returns when the runner is made. `name` is for errors: "replica 1 on cuda:1".
  static absl::StatusOr<std::unique_ptr<Replica>> Start(std::string name, Create create);
  // Waits for the task that runs.
  ~Replica();

  // The caller's while no task runs.
  GraphRunner& runner() { return *runner_; }
  const GraphRunner& runner() const { return *runner_; }

  // Has the thread run `task`. Returns at once; Await is called before the next one.
  void Begin(std::function<absl::Status(GraphRunner& runner)> task);
  // Returns when it has ended, with its status, whose message begins with the name. Memory that ran
  // out is OutOfMemory().
  absl::Status Await();

 private:
  explicit Replica(std::string name) : name_(std::move(name)), thread_([this] { Run(); }) {}
  void Run();
  void Give(std::function<absl::Status()> task);

  const std::string name_;
  std::unique_ptr<GraphRunner> runner_;

  Mutex mutex_;
  CondVar changed_;
  std::function<absl::Status()> task_ ABSL_GUARDED_BY(mutex_);  // null: none runs
  absl::Status status_ ABSL_GUARDED_BY(mutex_);                 // of the last one
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "replica"; last, so that it starts when all else is there
};

}  // namespace shoal
