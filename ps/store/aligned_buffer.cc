#include "ps/store/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace shoal {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
// A buffer of this size or more is a mapping of its own, so the system has its memory back as soon
// as it is freed. The allocator, tuned for transport, would keep it.
constexpr size_t kOwnMapping = size_t{128} << 10;

size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

// `alignment` is a multiple of the page size.
void* Map(size_t bytes, size_t alignment) {
  const size_t reserved = bytes + alignment;
  void* const mapped =
      mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  char* const begin = static_cast<char*>(mapped);
  char* const data =
      reinterpret_cast<char*>(RoundUp(reinterpret_cast<uintptr_t>(begin), alignment));
  if (data != begin) munmap(begin, data - begin);
  munmap(data + bytes, begin + reserved - (data + bytes));
  return data;
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size) {
  if (size > SIZE_MAX / sizeof(float) - 2 * kHugePage) throw std::bad_alloc();
  const size_t bytes = size * sizeof(float);
  if (bytes < kOwnMapping) {
    void* const data = std::aligned_alloc(kCacheLine, RoundUp(bytes + 1, kCacheLine));
    if (data == nullptr) throw std::bad_alloc();
    data_ = {static_cast<float*>(data), Free()};
    return;
  }
  const bool huge = bytes >= 2 * kHugePage;
  const size_t page = huge ? kHugePage : kPage;
  const size_t mapped = RoundUp(bytes, page);
  void* const data = Map(mapped, page);
  if (huge) madvise(data, mapped, MADV_HUGEPAGE);  // advice: changes speed only
  data_ = {static_cast<float*>(data), Free(mapped)};
}

void AlignedBuffer::Free::operator()(float* data) const {
  if (mapped_bytes == 0) return std::free(data);
  munmap(data, mapped_bytes);
}

}  // namespace shoal
