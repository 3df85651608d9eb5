#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "common/base/mutex.h"

namespace shoal {

// Runs work beside a loop, one piece at a time in the order in which it was given, on the thread
// "files", which starts with the first piece. Destruction waits for the piece that is running and
// drops the others. Thread-safe.
class OffloadThread {
 public:
  OffloadThread() = default;
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

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> work_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace shoal
