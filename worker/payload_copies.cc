#include "worker/payload_copies.h"

#include <utility>

namespace shoal {

void PayloadCopies::Copy(Message message, std::vector<Piece> pieces, std::function<void()> done) {
  loop_->OffloadBrief(
      [run = run_, message = std::move(message), pieces = std::move(pieces)] {
        MutexLock lock(&run->copying);
        if (run->dropped) return;
        for (const Piece& piece : pieces) {
          CopyPayload(message, piece.offset, piece.to, piece.size_bytes);
        }
      },
      [run = run_, done = std::move(done)] {
        // Without the lock: the loop, which alone drops, is not to wait for the next copy.
        if (!run->dropped) done();
      });
}

void PayloadCopies::Drop() {
  run_->dropped = true;
  { MutexLock lock(&run_->copying); }
  run_ = std::make_shared<Run>();
}

}  // namespace shoal
