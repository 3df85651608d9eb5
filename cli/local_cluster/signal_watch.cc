#include "cli/local_cluster/signal_watch.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace shoal {
namespace {

// A signal handler can reach only globals.
std::array<std::atomic<bool>, NSIG> arrived;
std::atomic<int> wake = -1;     // descriptor of the current watch
std::atomic<int> handlers = 0;  // running ones, which may be about to write to it

void Wake(int descriptor) {
  const uint64_t one = 1;
  // Fails only if the counter of the eventfd is full; the eventfd is readable then.
  [[maybe_unused]] const ssize_t written = write(descriptor, &one, sizeof(one));
}

void OnSignal(int signal) {
  const int error = errno;
  ++handlers;
  arrived[signal] = true;
  if (const int descriptor = wake; descriptor >= 0) Wake(descriptor);
  --handlers;
  errno = error;
}

int OpenEvent() {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) {
    std::perror("eventfd");
    std::abort();
  }
  return descriptor;
}

}  // namespace

SignalWatch::SignalWatch(DescriptorWatch* watch, const std::vector<int>& signals,
                         std::function<void(int)> on_signal)
    : watch_(watch), signals_(signals), on_signal_(std::move(on_signal)), descriptor_(OpenEvent()) {
  for (const int signal : signals_) arrived[signal] = false;
  wake = descriptor_;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals_) {
    struct sigaction previous = {};
    sigaction(signal, &action, &previous);
    previous_actions_.emplace_back(signal, previous);
    sigaddset(&set, signal);
  }
  // The parent process may have blocked them.
  pthread_sigmask(SIG_UNBLOCK, &set, &previous_mask_);
  watch_->Add(descriptor_, [this] { Read(); });
}

SignalWatch::~SignalWatch() {
  watch_->Remove(descriptor_);
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
  for (const auto& [signal, action] : previous_actions_) sigaction(signal, &action, nullptr);
  wake = -1;
  // After close, another file may get the same number.
  while (handlers > 0) std::this_thread::yield();
  close(descriptor_);
}

void SignalWatch::Read() {
  uint64_t count;
  // Reads first: a signal that arrives from here on makes it readable again.
  if (read(descriptor_, &count, sizeof(count)) != sizeof(count)) return;
  for (const int signal : signals_) {
    if (arrived[signal].exchange(false)) on_signal_(signal);
  }
}

}  // namespace shoal
