#include "worker/input/files/reading_memory.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/usable_cores.h"
#include "common/memory/memory_limit.h"

namespace shoal {
namespace {

thread_local std::vector<uint8_t> kept_bytes;

}  // namespace

int ReadingThreads() { return std::min(UsableCores(), kMaxReadingThreads); }

EncodedBytes::EncodedBytes(ReadingMemory* memory)
    : memory_(*memory), bytes_(std::move(kept_bytes)) {}

EncodedBytes::~EncodedBytes() {
  if (bytes_.capacity() <= ReadingMemory::kMaxKept) kept_bytes = std::move(bytes_);
}

absl::Status EncodedBytes::Resize(uint64_t size, const std::string& name) {
  if (size > ReadingMemory::kMaxEncoded) {
    return absl::DataLossError(absl::StrCat(name, ": has ", size, " bytes; expected at most ",
                                            ReadingMemory::kMaxEncoded));
  }
  // Releases the old buffer first. This avoids a copy of its content, and holds no more than `size`
  // if that comes from the budget.
  if (size > bytes_.capacity() || bytes_.capacity() > ReadingMemory::kMaxKept) {
    std::vector<uint8_t>().swap(bytes_);  // assigning {} would keep it
  }
  piece_ = {};
  if (size > ReadingMemory::kMaxKept) piece_ = memory_.encoded.Take(size);
  try {
    bytes_.reserve(size);
    bytes_.resize(size);
  } catch (const std::exception&) {
    return OutOfMemory(absl::StrCat(name, ", ", size, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace shoal
