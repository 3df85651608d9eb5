#pragma once

#include <cstdint>
#include <limits>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "common/memory/memory_needs.h"

namespace shoal {

// The memory limit of a process, or of several together, and its source.
struct MemoryLimit {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
  // For messages: "this machine has 23.5 GiB"; "this machine has 23.5 GiB, of which the cgroup
  // limit /sys/fs/cgroup/pod/memory.max leaves 2.0 GiB".
  std::string text;
};

// Returns the limit of this process. It is the minimum of the machine's memory, the limits of its
// cgroup and of those above it (versions 2 and 1), and the resource limits RLIMIT_AS and
// RLIMIT_DATA. Ignores limits that it cannot read. `root` is a prefix of every path, for tests.
MemoryLimit ReadMemoryLimit(const std::string& root = "");

// Returns the common limit of this process and its children. Omits the resource limits, which apply
// to each process separately.
MemoryLimit ReadSharedMemoryLimit(const std::string& root = "");

// Returns kFailedPrecondition if the permanent needs exceed the limit. The error lists names and
// sizes, and ends with `advice`, a sentence.
absl::Status CheckMemory(const MemoryNeeds& needs, const MemoryLimit& limit,
                         const std::string& advice);

// Returns a warning if only the permanent and temporary needs together exceed the limit, else "".
std::string MayRunShort(const MemoryNeeds& needs, const MemoryLimit& limit);

// Returns kFailedPrecondition for a failed allocation for `what`, with this process's current
// memory and its limit.
absl::Status OutOfMemory(const std::string& what);

// Returns the result of `work`, a Status or StatusOr, or OutOfMemory() if `work` runs out of
// memory.
template <typename Work>
auto CatchOutOfMemory(const std::string& what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return OutOfMemory(what);
  }
}

}  // namespace shoal
