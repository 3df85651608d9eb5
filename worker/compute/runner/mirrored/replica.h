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
#include "worker/compute/runner/graph_runner.h"

namespace shoal {

// A GraphRunner on a thread of its own, which creates, runs and destroys it. Both a current GPU and
// a CPU's compute threads belong to a thread. One caller at a time.
class Replica {
 public:
  using Create = std::function<absl::StatusOr<std::unique_ptr<GraphRunner>>()>;

  // Returns when the runner is ready. `name` is for errors: "replica 1 on cuda:1".
  static absl::StatusOr<std::unique_ptr<Replica>> Start(std::string name, Create create);
  // Waits for the running task.
  ~Replica();

  // The caller may use the runner while no task runs.
  GraphRunner& runner() { return *runner_; }
  const GraphRunner& runner() const { return *runner_; }

  // Starts `task` on the thread and returns at once. Call Await before the next Begin.
  void Begin(std::function<absl::Status(GraphRunner& runner)> task);
  // Waits for the task and returns its status; the message begins with the name. Returns
  // OutOfMemory() if memory ran out.
  absl::Status Await();

 private:
  explicit Replica(std::string name) : name_(std::move(name)), thread_([this] { Run(); }) {}
  void Run();
  void Submit(std::function<absl::Status()> task);

  const std::string name_;
  std::unique_ptr<GraphRunner> runner_;

  Mutex mutex_;
  CondVar changed_;
  std::function<absl::Status()> task_ ABSL_GUARDED_BY(mutex_);  // null: no task runs
  absl::Status status_ ABSL_GUARDED_BY(mutex_);                 // of the last task
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "replica"; last, so that it starts after all other members exist
};

}  // namespace shoal
