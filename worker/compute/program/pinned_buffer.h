#pragma once

namespace shoal {

// Keeps memory of the host pinned while it is held: a device copies from and to it while the host
// does other work.
class PinnedBuffer {
 public:
  virtual ~PinnedBuffer() = default;
};

}  // namespace shoal
