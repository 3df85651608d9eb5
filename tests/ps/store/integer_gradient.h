#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/ps/store/test_store.h"

namespace shoal {

// Makes the push of a chunk in a step. The gradient depends on both. It has small integers, so that
// sums are exact.
inline Message IntegerGradient(const VariableStore& store, uint64_t step, int chunk) {
  std::vector<float> values(store.chunk_size(chunk));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((step * 31 + chunk * 17 + i * 7) % 13) - 6;
  return PushOf(store, chunk, std::move(values));
}

}  // namespace shoal
