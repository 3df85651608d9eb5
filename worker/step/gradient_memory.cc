#include "worker/step/gradient_memory.h"

namespace shoal {

GradientMemory::GradientMemory(size_t count) {
  const size_t bytes = count * sizeof(float);
  shared_ = SharedMemory::Create(bytes);
  if (shared_ != nullptr && shared_->Reserve(0, bytes)) {
    floats_ = {reinterpret_cast<float*>(shared_->data()), count};
    return;
  }
  shared_ = nullptr;
  ordinary_.resize(count);
  floats_ = ordinary_;
}

}  // namespace shoal
