#include "common/rpc/offload_threads.h"

#include <pthread.h>

#include <system_error>
#include <utility>

namespace shoal {

OffloadThreads::~OffloadThreads() { Stop(); }

void OffloadThreads::Add(std::function<void()> work) {
  MutexLock lock(&mutex_);
  if (stopping_) return;
  work_.push_back(std::move(work));
  if (threads_.size() < max_threads_ && work_.size() > idle_) StartThread();
  changed_.NotifyOne();
}

// If the system gives no more threads, continues with the existing ones. Throws if there are none.
void OffloadThreads::StartThread() {
  try {
    threads_.emplace_back([this] { Run(); });
  } catch (const std::system_error&) {
    if (threads_.empty()) throw;
  }
}

void OffloadThreads::Close() {
  std::deque<std::function<void()>> dropped;
  MutexLock lock(&mutex_);
  stopping_ = true;
  changed_.NotifyAll();
  dropped.swap(work_);
}

void OffloadThreads::Stop() {
  Close();
  std::vector<std::thread> threads;
  {
    MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void OffloadThreads::Run() {
  pthread_setname_np(pthread_self(), name_);
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(&mutex_);
      ++idle_;
      while (work_.empty() && !stopping_) changed_.Wait(&mutex_);
      --idle_;
      if (stopping_) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace shoal
