#include "ps/store/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace shoal {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size) {
  if (size > SIZE_MAX / sizeof(float) - kHugePage) throw std::bad_alloc();
  const size_t bytes = size * sizeof(float);
  const bool huge = bytes >= 2 * kHugePage;
  const size_t alignment = huge ? kHugePage : kCacheLine;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (data == nullptr) throw std::bad_alloc();
  if (huge) madvise(data, rounded, MADV_HUGEPAGE);  // only advice: speed is all that it changes
  data_.reset(static_cast<float*>(data));
}

void AlignedBuffer::Free::operator()(float* data) const { std::free(data); }

}  // namespace shoal
