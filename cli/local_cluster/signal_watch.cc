#include "cli/local_cluster/signal_watch.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace shoal {
namespace {

sigset_t MakeSet(const std::vector<int>& signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

int OpenSignalDescriptor(const std::vector<int>& signals) {
  const sigset_t set = MakeSet(signals);
  const int descriptor = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (descriptor < 0) {
    std::perror("signalfd");
    std::abort();
  }
  return descriptor;
}

}  // namespace

void SignalWatch::BlockSignals(const std::vector<int>& signals) {
  const sigset_t set = MakeSet(signals);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SignalWatch::SignalWatch(DescriptorWatch* watch, const std::vector<int>& signals,
                         std::function<void(int)> on_signal)
    : watch_(watch), descriptor_(OpenSignalDescriptor(signals)), on_signal_(std::move(on_signal)) {
  watch_->Add(descriptor_, [this] { Read(); });
}

SignalWatch::~SignalWatch() {
  watch_->Remove(descriptor_);
  close(descriptor_);
}

void SignalWatch::Read() {
  signalfd_siginfo info;
  while (read(descriptor_, &info, sizeof(info)) == sizeof(info)) {
    on_signal_(static_cast<int>(info.ssi_signo));
  }
}

}  // namespace shoal
