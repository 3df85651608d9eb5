#include "common/daemon/stop_signals.h"

#include <chrono>
#include <csignal>

namespace shoal {
namespace {

// Longer than what sends a signal twice takes for it, shorter than a person takes to see that the
// first has not helped.
constexpr Time kSameRequest = std::chrono::seconds(1);

bool IsIgnored(int signal) {
  struct sigaction action = {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

std::vector<int> StopSignals() {
  std::vector<int> signals = {SIGTERM};
  for (const int signal : {SIGHUP, SIGINT}) {
    if (!IsIgnored(signal)) signals.push_back(signal);
  }
  return signals;
}

bool StopRequests::IsNew(Time now) {
  if (first_.has_value()) return now - *first_ >= kSameRequest;
  first_ = now;
  return true;
}

}  // namespace shoal
