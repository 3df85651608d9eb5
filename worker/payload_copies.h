#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/message.h"

namespace shoal {

// Copies payloads to where they belong beside the loop, several at a time and so in any order: of a
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
  // The same for what `copy` copies, on another thread.
  void Copy(std::function<void()> copy, std::function<void()> done);
  // Of what was asked for nothing is written from here on, and nothing called. Waits for all copies
  // that are running.
  void Drop();

 private:
  // What all copies since the last Drop have in common.
  struct Run {
    Mutex mutex;
    CondVar idle;  // none is running any more
    int copying ABSL_GUARDED_BY(mutex) = 0;
    bool dropped ABSL_GUARDED_BY(mutex) = false;
  };

  EventLoop* const loop_;
  std::shared_ptr<Run> run_ = std::make_shared<Run>();
};

}  // namespace shoal
