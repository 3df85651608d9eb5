#include "cli/trained_model/stop_request.h"

#include <atomic>
#include <chrono>
#include <csignal>

#include "common/daemon/stop_signals.h"

namespace shoal {
namespace {

// A signal handler can reach only globals.
std::atomic<bool> stop_requested = false;
std::atomic_flag handling;
StopRequests requests;  // owned by the thread that has set `handling`

void OnStopSignal(int signal) {
  // Two simultaneous signals are one request.
  if (handling.test_and_set()) return;
  const bool is_new = requests.IsNew(std::chrono::steady_clock::now().time_since_epoch());
  const bool again = is_new && stop_requested.exchange(true);
  handling.clear();
  if (!again) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void SetHandlers(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : StopSignals()) sigaddset(&action.sa_mask, signal);
  for (const int signal : StopSignals()) sigaction(signal, &action, nullptr);
}

}  // namespace

StopRequest::StopRequest() {
  stop_requested = false;
  requests = {};
  SetHandlers(OnStopSignal);
}

StopRequest::~StopRequest() { SetHandlers(SIG_DFL); }

bool StopRequest::requested() const { return stop_requested; }

}  // namespace shoal
