#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/vectorize.h"

namespace shoal {

// The elements that a loop of an optimizer processes. `values` and `out` may be the same.
struct Elements {
  const UnalignedFloat* gradient;
  const float* values;
  float* out;
  float* const* slots;  // each has `size` elements
  size_t size;
};

template <typename Loop>
class LoopUpdate : public Update {
 public:
  explicit LoopUpdate(Loop loop) : loop_(std::move(loop)) {}

  void Apply(std::span<const float> gradient, std::span<const float> values, std::span<float> out,
             std::span<float* const> slots) const override {
    loop_(Elements{reinterpret_cast<const UnalignedFloat*>(gradient.data()), values.data(),
                   out.data(), slots.data(), out.size()});
  }

 private:
  const Loop loop_;
};

// Returns an update that calls `loop`, a function of Elements, for each run of elements.
template <typename Loop>
std::unique_ptr<const Update> UpdateOf(Loop loop) {
  return std::make_unique<LoopUpdate<Loop>>(std::move(loop));
}

}  // namespace shoal
