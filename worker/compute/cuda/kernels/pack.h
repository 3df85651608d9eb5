#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "worker/compute/op_math/float16.h"

namespace shoal::cuda {

// `width` neighbouring elements, read or written by one thread in accesses of 16 bytes, the widest
// possible. A warp then moves 512 bytes at once, and instructions are not the bound. Addresses are
// multiples of 16 bytes, or of the pack's size if that is smaller.
template <int width>
struct Pack {
  float values[width];

  SHOAL_HOST_DEVICE float& operator[](int i) { return values[i]; }
  SHOAL_HOST_DEVICE float operator[](int i) const { return values[i]; }
};

namespace pack_internal {

// The pack as words, as a thread holds it in registers.
template <typename Element, int width>
struct alignas(sizeof(Element) * width < 16 ? sizeof(Element) * width : 16) Raw {
  using Word =
      std::conditional_t<sizeof(Element) * width % sizeof(uint32_t) == 0, uint32_t, Element>;
  Word words[sizeof(Element) * width / sizeof(Word)];
};

// An unaligned access is an error on a device; the host must not hide it.
template <typename Raw>
void AbortUnlessAligned(const void* address) {
  if (reinterpret_cast<uintptr_t>(address) % alignof(Raw) != 0) std::abort();
}

}  // namespace pack_internal

// Elements as they are in memory. For threads that read ahead: waiting elements take only as many
// registers as they have bytes.
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

// Calls use(width) with the widest pack that divides a row of `columns` elements, as a constant: 16
// bytes of Element, or one element.
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
