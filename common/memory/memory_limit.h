#pragma once

#include <cstdint>
#include <limits>
#include <new>
#include <string>

#include "absl/status/status.h"
#include "common/memory/memory_needs.h"

namespace shoal {

// How much memory a process, or several together, may have, and by what.
struct MemoryLimit {
  uint64_t bytes = std::numeric_limits<uint64_t>::max();
  // For people: "this machine has 23.5 GiB"; "this machine has 23.5 GiB, of which the cgroup's
  // limit /sys/fs/cgroup/pod/memory.max leaves 2.0 GiB".
  std::string text;
};

// Of this process: the memory of the machine, the limits of its cgroup and of those above it
// (version 2 and 1), and the resource limits RLIMIT_AS and RLIMIT_DATA; the least of them. What
// cannot be read does not limit. `root` stands before every path, for tests.
MemoryLimit ReadMemoryLimit(const std::string& root = "");

// Of this process and those that it starts, together: the same without the resource limits, which
// each process has for itself.
MemoryLimit ReadSharedMemoryLimit(const std::string& root = "");

// kFailedPrecondition, by name and size, where what is held all the time exceeds the limit; ends
// with `advice`, a sentence.
absl::Status CheckMemory(const MemoryNeeds& needs, const MemoryLimit& limit,
                         const std::string& advice);

// Where only what comes at times exceeds the limit: says so. Empty where all of it fits.
std::string MayRunShort(const MemoryNeeds& needs, const MemoryLimit& limit);

// For where an allocation for `what` has failed: kFailedPrecondition, with what this process holds
// now and may have.
absl::Status OutOfMemory(const std::string& what);

// The result of `work`, a status or one with a value, or OutOfMemory() where the memory for it runs
// out.
template <typename Work>
auto CatchOutOfMemory(const std::string& what, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return OutOfMemory(what);
  }
}

}  // namespace shoal
