#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace shoal {

// Work that can pause in the middle and continue later. It simulates a thread of the process. It
// must have ended before its destruction.
class Fiber {
 public:
  explicit Fiber(std::function<void()> work);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs until the work pauses or ends.
  void Resume();
  bool ended() const { return ended_; }
  // The work calls this to return to Resume.
  void Pause();

 private:
  static void Enter(unsigned high, unsigned low);

  const std::function<void()> work_;
  std::unique_ptr<char[]> stack_;
  ucontext_t own_;
  ucontext_t caller_;
  bool ended_ = false;
};

}  // namespace shoal
