#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "common/base/mutex.h"

namespace shoal {

// Runs work beside a loop, one piece at a time in the order in which it was given, on a thread of
// its own, which starts with the first piece. Destruction waits for the piece that is running and
// drops the others. Thread-safe.
class OffloadThread {
 public:
  // `name` of the thread: a literal of at most 15 characters.
  explicit OffloadThread(const char* name) : name_(name) {}
  ~OffloadThread();
  OffloadThread(const OffloadThread&) = delete;
  OffloadThread& operator=(const OffloadThread&) = delete;

  void Add(std::function<void()> work);
  // Drops all that has not begun, and what is added later.
  void Close();
  // As destruction does.
  void Stop();

 private:
  void Run();

  const char* const name_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
