#pragma once

#include <cstdint>

namespace shoal {

// A seeded permutation of [0, size) in constant memory: a Feistel network over the next power of
// four, applied until the result is inside [0, size) (format-preserving encryption by cycle
// walking; J. Black and P. Rogaway, "Ciphers with Arbitrary Finite Domains"). Takes fewer than four
// applications on average. The result for given arguments must never change: checkpoints rely on
// it. Thread-safe.
class IndexPermutation {
 public:
  IndexPermutation(uint64_t size, uint64_t seed, uint64_t epoch);
  // Returns the image of position `i` < size.
  uint64_t operator()(uint64_t i) const;

 private:
  static constexpr int kRounds = 4;

  uint64_t Encrypt(uint64_t i) const;

  uint64_t size_;
  int half_bits_;  // the network permutes numbers of 2 * half_bits_ bits
  uint64_t keys_[kRounds];
};

}  // namespace shoal
