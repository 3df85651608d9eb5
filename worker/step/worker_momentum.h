#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace shoal {

// A momentum that a worker keeps for itself (DANA-Slim: Hakimi, Barkai, Gabel and Schuster,
// https://arxiv.org/abs/1907.11612). For a gradient g it computes
//   v = momentum v + g,  and pushes  momentum v + g.
// With plain SGD the ps turns these into Nesterov's momentum, separately for each worker's
// gradients. So many workers do not amplify one another's momentum. Not thread-safe.
class WorkerMomentum {
 public:
  // For gradients in a buffer of `size` floats.
  WorkerMomentum(double momentum, size_t size)
      : momentum_(static_cast<float>(momentum)), velocity_(size) {}

  // Replaces the gradients, which begin at `offset` of the buffer, by the values to push.
  void Take(size_t offset, std::span<float> gradients) {
    float* const velocity = velocity_.data() + offset;
    for (size_t i = 0; i < gradients.size(); ++i) {
      velocity[i] = momentum_ * velocity[i] + gradients[i];
      gradients[i] += momentum_ * velocity[i];
    }
  }
  // Resets the momentum: another timeline begins without gradients.
  void Forget() { std::fill(velocity_.begin(), velocity_.end(), 0.0f); }

 private:
  const float momentum_;
  std::vector<float> velocity_;
};

}  // namespace shoal
