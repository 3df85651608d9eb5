#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace shoal {

// Time as the protocol sees it: since an arbitrary start, never going back. Injected, so that tests
// and the simulator own it.
using Time = std::chrono::nanoseconds;

inline double ToSeconds(Time time) { return std::chrono::duration<double>(time).count(); }
inline Time FromSeconds(double seconds) {
  return std::chrono::duration_cast<Time>(std::chrono::duration<double>(seconds));
}
// For people.
inline int64_t WholeSeconds(Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

// Where work that is offloaded waits.
enum class Lane {
  kFiles,   // reading and writing files: one piece at a time, in order
  kBrief,   // pieces of a moment that must not wait behind gigabytes of files; in order, too
  kCopies,  // copies of large payloads: several at a time where there are cores for it, in any
            // order
};

// Where protocol logic runs: one thread calls all callbacks of a task, one at a time, so that the
// logic needs no locks. Implementations: the gRPC completion queue (a daemon), an in-process loop
// on a thread (cluster tests), a simulated one (fake clock). Everything but Post may be called on
// the loop's thread only.
class EventLoop {
 public:
  using TimerId = uint64_t;
  virtual ~EventLoop() = default;

  virtual Time Now() const = 0;
  // Runs `callback` once at Now() + delay or soon after. Never returns 0.
  virtual TimerId CallAfter(Time delay, std::function<void()> callback) = 0;
  // No effect when the timer has fired or was cancelled.
  virtual void CancelTimer(TimerId timer) = 0;
  // Runs `callback` on the loop, after what is queued already. From any thread; may be the only
  // call that wakes the loop. Dropped when the loop has ended.
  virtual void Post(std::function<void()> callback) = 0;
  // Runs `work` off the loop, in that lane, then `done` on the loop. A loop without real threads
  // may have one queue for several lanes.
  virtual void Offload(Lane lane, std::function<void()> work, std::function<void()> done) = 0;
  // Makes Run return after the callback that is running.
  virtual void Stop() = 0;
};

}  // namespace shoal
