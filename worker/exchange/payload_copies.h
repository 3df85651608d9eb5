#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/message.h"

namespace shoal {

// Copies payloads to their destination outside the loop, several at once and in any order. For a
// model of a hundred megabytes the loop would copy that much in each step, and outgoing gradients
// would wait for it. Loop thread only.
class PayloadCopies {
 public:
  // A part of a payload, from `offset` on.
  struct Piece {
    float* to;
    size_t offset;
    size_t size_bytes;
  };

  explicit PayloadCopies(EventLoop* loop) : loop_(loop) {}  // `loop` must outlive this
  ~PayloadCopies() { Drop(); }
  PayloadCopies(const PayloadCopies&) = delete;
  PayloadCopies& operator=(const PayloadCopies&) = delete;

  // Copies the pieces, then calls `done` on the loop; never before this returns.
  void Copy(Message message, std::vector<Piece> pieces, std::function<void()> done);
  // The same, but runs `copy` on another thread.
  void Copy(std::function<void()> copy, std::function<void()> done);
  // Cancels all requested copies: none writes or calls `done` from here on. Waits for all copies
  // that are running.
  void Drop();

 private:
  // The shared state of all copies since the last Drop.
  struct Run {
    Mutex mutex;
    CondVar idle;  // no copy is running
    int copying ABSL_GUARDED_BY(mutex) = 0;
    bool dropped ABSL_GUARDED_BY(mutex) = false;
  };

  EventLoop* const loop_;
  std::shared_ptr<Run> run_ = std::make_shared<Run>();
};

}  // namespace shoal
