#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace shoal {

// A momentum that a worker keeps for itself (DANA-Slim: Hakimi, Barkai, Gabel and Schuster,
// https://arxiv.org/abs/1907.11612): of a gradient g it makes
//   v = momentum v + g,  and pushes  momentum v + g,
// which ps that apply plain SGD add up to Nesterov's momentum, each worker's of its own gradients
// alone: so many workers do not push one another further along. Not thread-safe.
class WorkerMomentum {
 public:
  // For gradients that lie in a buffer of so many floats.
  WorkerMomentum(double momentum, size_t size)
      : momentum_(static_cast<float>(momentum)), velocity_(size) {}

  // Of gradients that begin at `offset` of the buffer; what is pushed takes their place.
  void Take(size_t offset, std::span<float> gradients) {
    float* const velocity = velocity_.data() + offset;
    for (size_t i = 0; i < gradients.size(); ++i) {
      velocity[i] = momentum_ * velocity[i] + gradients[i];
      gradients[i] += momentum_ * velocity[i];
    }
  }
  // As at the beginning: of another timeline there were no gradients.
  void Forget() { std::fill(velocity_.begin(), velocity_.end(), 0.0f); }

 private:
  const float momentum_;
  std::vector<float> velocity_;
};

}  // namespace shoal
