#pragma once

#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>

namespace shoal {

// A piece of work that can be left in the middle and gone on with later: a thread of the simulated
// process, without being one. It must have ended before it is destroyed.
class Fiber {
 public:
  explicit Fiber(std::function<void()> work);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs until the work pauses or ends.
  void Resume();
  bool ended() const { return ended_; }
  // Called by the work: returns to Resume.
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
