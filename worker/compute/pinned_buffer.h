#pragma once

namespace shoal {

// While this is held, the memory of the host that it stands for is pinned: a device copies from and
// to it while the host does other things.
class PinnedBuffer {
 public:
  virtual ~PinnedBuffer() = default;
};

}  // namespace shoal
