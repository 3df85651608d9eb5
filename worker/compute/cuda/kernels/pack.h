#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "worker/compute/cuda/kernels/float16.h"

namespace shoal::cuda {

// `width` neighbouring elements, read or written by one thread in accesses of 16 bytes, the widest
// that there are: a warp then moves 512 bytes, and instructions do not bound it. Addresses are
// multiples of 16 bytes, or of the pack's size where that is less.
template <int width>
struct Pack {
  float values[width];

  SHOAL_HOST_DEVICE float& operator[](int i) { return values[i]; }
  SHOAL_HOST_DEVICE float operator[](int i) const { return values[i]; }
};

namespace pack_internal {

template <typename Element, int width>
struct alignas(sizeof(Element) * width < 16 ? sizeof(Element) * width : 16) Raw {
  Element elements[width];
};

// On a device such an access is an error; the host is not to let it pass.
template <typename Raw>
void AbortUnlessAligned(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % alignof(Raw) != 0) std::abort();
}

}  // namespace pack_internal

template <int width, typename Element>
SHOAL_HOST_DEVICE Pack<width> Load(const Element* from) {
  using Raw = pack_internal::Raw<Element, width>;
#ifdef __CUDA_ARCH__
  const Raw raw = *reinterpret_cast<const Raw*>(from);
#else
  pack_internal::AbortUnlessAligned<Raw>(from);
  Raw raw;
  std::memcpy(&raw, from, sizeof(raw));
#endif
  Pack<width> pack;
  for (int i = 0; i < width; ++i) pack[i] = ToFloat(raw.elements[i]);
  return pack;
}

template <int width, typename Element>
SHOAL_HOST_DEVICE void Store(const Pack<width>& pack, Element* to) {
  using Raw = pack_internal::Raw<Element, width>;
  Raw raw;
  for (int i = 0; i < width; ++i) raw.elements[i] = FromFloat<Element>(pack[i]);
#ifdef __CUDA_ARCH__
  *reinterpret_cast<Raw*>(to) = raw;
#else
  pack_internal::AbortUnlessAligned<Raw>(to);
  std::memcpy(to, &raw, sizeof(raw));
#endif
}

// Calls use(width) with the widest pack that rows of `columns` elements are made of, as a constant
// of its own type: 16 bytes of Element, or one element.
template <typename Element, typename Use>
void WithWidth(int64_t columns, const Use& use) {
  constexpr int kWidest = 16 / sizeof(Element);
  if (columns % kWidest == 0) {
    use(std::integral_constant<int, kWidest>());
  } else {
    use(std::integral_constant<int, 1>());
  }
}

}  // namespace shoal::cuda
