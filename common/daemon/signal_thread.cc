#include "common/daemon/signal_thread.h"

#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace shoal {
namespace {

// For the signal handler, which takes no other arguments.
std::atomic<pthread_t> signal_thread;

// Runs on a library's thread from before main(), which does not block the signals.
void PassOn(int signal) {
  const int error = errno;
  pthread_kill(signal_thread, signal);
  errno = error;
}

}  // namespace

SignalThread::SignalThread(std::function<Time()> now) : now_(std::move(now)) {
  const std::vector<int> stop_signals = StopSignals();
  std::signal(SIGPIPE, SIG_IGN);
  sigemptyset(&signals_);
  for (const int signal : stop_signals) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, &previous_mask_);
  thread_ = std::thread([this] { Run(); });
  signal_thread = thread_.native_handle();
  struct sigaction pass_on = {};
  pass_on.sa_handler = PassOn;
  pass_on.sa_flags = SA_RESTART;
  for (const int signal : stop_signals) {
    struct sigaction previous = {};
    sigaction(signal, &pass_on, &previous);
    previous_actions_.emplace_back(signal, previous);
  }
}

SignalThread::~SignalThread() {
  for (const auto& [signal, action] : previous_actions_) sigaction(signal, &action, nullptr);
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
    if (!requests_.IsNew(now_())) continue;
    ++count_;
    if (handler_) handler_(++reported_);
  }
}

}  // namespace shoal
