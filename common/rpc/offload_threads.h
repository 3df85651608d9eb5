#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "common/base/mutex.h"

namespace shoal {

// Runs work beside a loop, begun in the order in which it was given: one piece at a time on a
// thread of its own, or as many at a time as it has threads. One starts when none is idle.
// Destruction waits for what is running and drops the rest. Thread-safe.
class OffloadThreads {
 public:
  // `name` of the thread: a literal of at most 15 characters.
  explicit OffloadThreads(const char* name, size_t threads = 1) : name_(name), most_(threads) {}
  ~OffloadThreads();
  OffloadThreads(const OffloadThreads&) = delete;
  OffloadThreads& operator=(const OffloadThreads&) = delete;

  void Add(std::function<void()> work);
  // Drops all that has not begun, and what is added later.
  void Close();
  // As destruction does.
  void Stop();

 private:
  void Run();
  void StartThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const char* const name_;
  const size_t most_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t idle_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
