#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace shoal {

// Allocates memory in pages of its own. Pinning works on whole pages, and a page must not be pinned
// twice.
template <typename Element>
struct PageAllocator {
  using value_type = Element;

  PageAllocator() = default;
  template <typename Other>
  PageAllocator(const PageAllocator<Other>&) {}  // NOLINT(google-explicit-constructor): implicit

  Element* allocate(size_t count) {
    return static_cast<Element*>(::operator new(SizeBytes(count), std::align_val_t(kPageBytes)));
  }
  void deallocate(Element* memory, size_t /*count*/) {
    ::operator delete(memory, std::align_val_t(kPageBytes));  // clang lacks the sized form
  }
  bool operator==(const PageAllocator&) const = default;

 private:
  static constexpr size_t kPageBytes = 4096;
  static size_t SizeBytes(size_t count) {
    return (count * sizeof(Element) + kPageBytes - 1) / kPageBytes * kPageBytes;
  }
};

using PageAlignedFloats = std::vector<float, PageAllocator<float>>;

}  // namespace shoal
