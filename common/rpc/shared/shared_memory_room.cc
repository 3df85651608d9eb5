#include "common/rpc/shared/shared_memory_room.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/base/text/format_bytes.h"

namespace shoal {

size_t SharedMemoryRoom::MachineMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  return pages > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) : 0;
}

std::optional<uint64_t> SharedMemoryRoom::FreeAddressSpace() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  if (!(statm >> pages)) return 0;
  const uint64_t taken = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > taken ? limit.rlim_cur - taken : 0;
}

bool SharedMemoryRoom::FitsAddressSpace(size_t bytes) {
  const std::optional<uint64_t> free = options_.free_address_space();
  if (!free.has_value()) return true;
  const uint64_t keep_free = keep_free_bytes_;
  if (bytes <= *free && *free - bytes >= keep_free) return true;
  // No warning before KeepFree().
  if (keep_free != std::numeric_limits<uint64_t>::max() && options_.warn &&
      !warned_.exchange(true)) {
    options_.warn(absl::StrCat(
        "shares no memory with a peer of this machine, which is slower: it needs ",
        FormatBytes(bytes), " of address space; ", FormatBytes(*free), " are free, ",
        FormatBytes(keep_free), " are kept for other work; raise RLIMIT_AS (`ulimit -v`)"));
  }
  return false;
}

bool SharedMemoryRoom::Take(size_t bytes) {
  if (bytes > max_file_bytes() || !FitsAddressSpace(bytes)) return false;
  if (taken_bytes_ += bytes; taken_bytes_ <= options_.max_bytes) return true;
  taken_bytes_ -= bytes;
  return false;
}

}  // namespace shoal
