#include "common/daemon/stop_signals.h"

#include <chrono>
#include <csignal>

namespace shoal {
namespace {

// Longer than the time between two signals of one request. Shorter than the time in which a user
// sees that the first had no effect.
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
