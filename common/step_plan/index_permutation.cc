#include "common/step_plan/index_permutation.h"

namespace shoal {
namespace {

constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio

// The output function of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators"): every input bit reaches every output bit.
uint64_t Mix(uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The smallest half width with size <= 4^half_bits.
int HalfBits(uint64_t size) {
  int half_bits = 0;
  while (half_bits < 32 && (size - 1) >> (2 * half_bits) != 0) ++half_bits;
  return half_bits;
}

}  // namespace

IndexPermutation::IndexPermutation(uint64_t size, uint64_t seed, uint64_t epoch)
    : size_(size), half_bits_(HalfBits(size)) {
  // Mixes one after the other, so that (seed, epoch + 1) and (seed + 1, epoch) are unrelated.
  uint64_t state = Mix(Mix(seed) ^ epoch);
  for (uint64_t& key : keys_) {
    state += kGolden;
    key = Mix(state);
  }
}

uint64_t IndexPermutation::operator()(uint64_t i) const {
  do {
    i = Encrypt(i);
  } while (i >= size_);
  return i;
}

uint64_t IndexPermutation::Encrypt(uint64_t i) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = i >> half_bits_;
  uint64_t right = i & mask;
  for (const uint64_t key : keys_) {
    const uint64_t mixed = left ^ (Mix(right ^ key) & mask);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

}  // namespace shoal
