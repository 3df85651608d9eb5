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

// In words, as a thread has them in registers.
template <typename Element, int width>
struct alignas(sizeof(Element) * width < 16 ? sizeof(Element) * width : 16) Raw {
  using Word =
      std::conditional_t<sizeof(Element) * width % sizeof(uint32_t) == 0, uint32_t, Element>;
  Word words[sizeof(Element) * width / sizeof(Word)];
};

// On a device such an access is an error; the host is not to let it pass.
template <typename Raw>
void AbortUnlessAligned(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % alignof(Raw) != 0) std::abort();
}

}  // namespace pack_internal

// Elements as they lie in memory: of a thread that reads more before it needs the first, which
// then wait in as few registers as they have bytes.
template <typename Element, int width>
using RawPack = pack_internal::Raw<Element, width>;

template <int width, typename Element>
SHOAL_HOST_DEVICE RawPack<Element, width> LoadRaw(const Element* from) {
  using Raw = RawPack<Element, width>;
#ifdef __CUDA_ARCH__
  return *reinterpret_cast<const Raw*>(from);
#else
  pack_internal::AbortUnlessAligned<Raw>(from);
  Raw raw;
  std::memcpy(&raw, from, sizeof(raw));
  return raw;
#endif
}

template <typename Element, int width>
SHOAL_HOST_DEVICE Pack<width> Unpack(const pack_internal::Raw<Element, width>& raw) {
  Element elements[width];
  memcpy(elements, raw.words, sizeof(elements));
  Pack<width> pack;
  for (int i = 0; i < width; ++i) pack[i] = ToFloat(elements[i]);
  return pack;
}

template <int width, typename Element>
SHOAL_HOST_DEVICE Pack<width> Load(const Element* from) {
  return Unpack(LoadRaw<width>(from));
}

template <typename Element, int width>
SHOAL_HOST_DEVICE void StoreRaw(const pack_internal::Raw<Element, width>& raw, Element* to) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<RawPack<Element, width>*>(to) = raw;
#else
  pack_internal::AbortUnlessAligned<RawPack<Element, width> >(to);
  std::memcpy(to, &raw, sizeof(raw));
#endif
}

template <int width, typename Element>
SHOAL_HOST_DEVICE void Store(const Pack<width>& pack, Element* to) {
  Element elements[width];
  for (int i = 0; i < width; ++i) elements[i] = FromFloat<Element>(pack[i]);
  RawPack<Element, width> raw;
  memcpy(raw.words, elements, sizeof(elements));
  StoreRaw(raw, to);
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
