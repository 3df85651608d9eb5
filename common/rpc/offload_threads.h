#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace shoal {

// Runs work on its own threads, off the loop. Begins work in the order of Add(), at most `threads`
// at a time. Starts a thread if none is idle. Destruction waits for running work and drops the
// rest. Thread-safe.
class OffloadThreads {
 public:
  // `name`: the name of the threads, a literal of at most 15 characters.
  explicit OffloadThreads(const char* name, size_t threads = 1)
      : name_(name), max_threads_(threads) {}
  ~OffloadThreads();
  OffloadThreads(const OffloadThreads&) = delete;
  OffloadThreads& operator=(const OffloadThreads&) = delete;

  void Add(std::function<void()> work);
  // Drops all work that has not begun, and work that is added later.
  void Close();
  // Closes, then waits for running work, like destruction.
  void Stop();

 private:
  void Run();
  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const char* const name_;
  const size_t max_threads_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
