#include "worker/compute/program/arena.h"

#include <sys/mman.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "common/base/text/format_bytes.h"
#include "common/memory/memory_limit.h"

namespace shoal {

void Arena::Free::operator()(char* memory) const { std::free(memory); }

absl::Status Arena::Reserve(int64_t size_bytes) {
  if (size_bytes <= size_bytes_) return absl::OkStatus();
  constexpr int64_t kHugePage = int64_t{2} << 20;
  const int64_t rounded = (size_bytes + kHugePage - 1) / kHugePage * kHugePage;
  memory_.reset();
  size_bytes_ = 0;
  memory_.reset(static_cast<char*>(std::aligned_alloc(kHugePage, rounded)));
  if (memory_ == nullptr) {
    return OutOfMemory(absl::StrCat("the ", FormatBytes(size_bytes), " of activations of a batch"));
  }
  // Only advice: if the kernel rejects it, the arena lies on ordinary pages.
  (void)madvise(memory_.get(), rounded, MADV_HUGEPAGE);
  size_bytes_ = rounded;
  return absl::OkStatus();
}

}  // namespace shoal
