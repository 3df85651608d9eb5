#include "common/rpc/offload_thread.h"

#include <pthread.h>

#include <utility>

namespace shoal {

OffloadThread::~OffloadThread() { Stop(); }

void OffloadThread::Add(std::function<void()> work) {
  MutexLock lock(&mutex_);
  if (stopping_) return;
  work_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.NotifyOne();
}

void OffloadThread::Close() {
  std::deque<std::function<void()>> dropped;
  MutexLock lock(&mutex_);
  stopping_ = true;
  changed_.NotifyOne();
  dropped.swap(work_);
}

void OffloadThread::Stop() {
  Close();
  std::thread thread;
  {
    MutexLock lock(&mutex_);
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void OffloadThread::Run() {
  pthread_setname_np(pthread_self(), name_);
  while (true) {
    std::function<void()> work;
    {
      MutexLock lock(&mutex_);
      while (work_.empty() && !stopping_) changed_.Wait(&mutex_);
      if (stopping_) return;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
  }
}

}  // namespace shoal
