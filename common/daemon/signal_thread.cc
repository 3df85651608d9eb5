#include "common/daemon/signal_thread.h"

#include <pthread.h>

namespace shoal {

SignalThread::SignalThread() {
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_mask_);
  thread_ = std::thread([this] { Run(); });
}

SignalThread::~SignalThread() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

void SignalThread::SetHandler(std::function<void(int)> handler) {
  MutexLock lock(&mutex_);
  handler_ = std::move(handler);
  while (handler_ && reported_ < count_) handler_(++reported_);
}

void SignalThread::Run() {
  pthread_setname_np(pthread_self(), "signals");
  while (true) {
    int signal = 0;
    sigwait(&signals_, &signal);
    MutexLock lock(&mutex_);
    if (stopping_) return;
    ++count_;
    if (handler_) handler_(++reported_);
  }
}

}  // namespace shoal
