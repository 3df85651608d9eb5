#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/message.h"

namespace shoal {

// Copies payloads to where they belong beside the loop, in the order in which it is asked to: of a
// model of a hundred megabytes the loop has as much to copy out in each step, and the gradients
// that leave meanwhile would wait for it. Loop thread only.
class PayloadCopies {
 public:
  // A part of a payload, from `offset` on.
  struct Piece {
    float* to;
    size_t offset;
    size_t size_bytes;
  };

  explicit PayloadCopies(EventLoop* loop) : loop_(loop) {}  // outlives this
  ~PayloadCopies() { Drop(); }
  PayloadCopies(const PayloadCopies&) = delete;
  PayloadCopies& operator=(const PayloadCopies&) = delete;

  // Then calls `done` on the loop, not before this returns.
  void Copy(Message message, std::vector<Piece> pieces, std::function<void()> done);
  // Of what was asked for nothing is written from here on, and nothing called. Waits for the copy
  // that is running, if there is one.
  void Drop();

 private:
  // What all copies since the last Drop have in common.
  struct Run {
    Mutex copying;  // held while one is: who drops waits for it
    std::atomic<bool> dropped = false;
  };

  EventLoop* const loop_;
  std::shared_ptr<Run> run_ = std::make_shared<Run>();
};

}  // namespace shoal
