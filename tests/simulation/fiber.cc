#include "tests/simulation/fiber.h"

#include <cassert>
#include <cstdint>
#include <utility>
#include <vector>

namespace shoal {
namespace {

constexpr size_t kStackBytes = 256 << 10;

// Stacks that were used before are warm.
std::vector<std::unique_ptr<char[]>>& FreeStacks() {
  thread_local std::vector<std::unique_ptr<char[]>> stacks;
  return stacks;
}

}  // namespace

Fiber::Fiber(std::function<void()> work) : work_(std::move(work)) {
  if (FreeStacks().empty()) {
    stack_ = std::make_unique_for_overwrite<char[]>(kStackBytes);
  } else {
    stack_ = std::move(FreeStacks().back());
    FreeStacks().pop_back();
  }
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = &caller_;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&own_, reinterpret_cast<void (*)()>(Enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  assert(ended_);
  FreeStacks().push_back(std::move(stack_));
}

void Fiber::Enter(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
  self->work_();
  self->ended_ = true;
}

void Fiber::Resume() { swapcontext(&caller_, &own_); }

void Fiber::Pause() { swapcontext(&own_, &caller_); }

}  // namespace shoal
