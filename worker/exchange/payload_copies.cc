#include "worker/exchange/payload_copies.h"

#include <utility>

namespace shoal {

void PayloadCopies::Copy(Message message, std::vector<Piece> pieces, std::function<void()> done) {
  Copy(
      [message = std::move(message), pieces = std::move(pieces)] {
        for (const Piece& piece : pieces) {
          CopyPayload(message, piece.offset, piece.to, piece.size_bytes);
        }
      },
      std::move(done));
}

void PayloadCopies::Copy(std::function<void()> copy, std::function<void()> done) {
  loop_->Offload(
      Lane::kCopies,
      [run = run_, copy = std::move(copy)] {
        {
          MutexLock lock(&run->mutex);
          if (run->dropped) return;
          ++run->copying;
        }
        copy();
        MutexLock lock(&run->mutex);
        if (--run->copying == 0) run->idle.NotifyAll();
      },
      [run = run_, done = std::move(done)] {
        {
          MutexLock lock(&run->mutex);
          if (run->dropped) return;
        }
        done();
      });
}

void PayloadCopies::Drop() {
  {
    MutexLock lock(&run_->mutex);
    run_->dropped = true;
    while (run_->copying > 0) run_->idle.Wait(&run_->mutex);
  }
  run_ = std::make_shared<Run>();
}

}  // namespace shoal
