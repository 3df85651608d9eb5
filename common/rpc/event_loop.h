#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace shoal {

// The time since an arbitrary start; it never goes back. The loop injects it, so tests and the
// simulator control it.
using Time = std::chrono::nanoseconds;

inline double ToSeconds(Time time) { return std::chrono::duration<double>(time).count(); }
inline Time FromSeconds(double seconds) {
  return std::chrono::duration_cast<Time>(std::chrono::duration<double>(seconds));
}
// For texts.
inline int64_t WholeSeconds(Time time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time).count();
}

// The queues of offloaded work.
enum class Lane {
  kFiles,   // reads and writes of files; one piece at a time, in order
  kBrief,   // short pieces that must not wait behind gigabytes of files; also in order
  kCopies,  // copies of large payloads; several at a time if there are cores for them, in any order
};

// Runs protocol logic: one thread calls all callbacks of a task, one at a time. So the logic needs
// no locks. Implementations: a gRPC completion queue (daemons), an in-process loop on a thread
// (cluster tests) and a simulated loop (fake clock). Loop thread only, except Post().
class EventLoop {
 public:
  using TimerId = uint64_t;
  virtual ~EventLoop() = default;

  virtual Time Now() const = 0;
  // Runs `callback` once at Now() + delay or soon after. Never returns 0.
  virtual TimerId CallAfter(Time delay, std::function<void()> callback) = 0;
  // Ignores a timer that has fired or was cancelled.
  virtual void CancelTimer(TimerId timer) = 0;
  // Runs `callback` on the loop, after all queued callbacks. Drops it if the loop has ended. Any
  // thread; may be the only call that wakes the loop.
  virtual void Post(std::function<void()> callback) = 0;
  // Runs `work` off the loop in that lane, then `done` on the loop. A loop without real threads may
  // have one queue for several lanes.
  virtual void Offload(Lane lane, std::function<void()> work, std::function<void()> done) = 0;
  // Makes Run() return after the running callback.
  virtual void Stop() = 0;
};

}  // namespace shoal
