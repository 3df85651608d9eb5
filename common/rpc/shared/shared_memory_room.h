#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace shoal {

// Limits the shared memory that a process maps, its own and its peers'. A user takes room before it
// maps memory. Without room, payloads travel in their messages.
//
// An honest worker has the memory that it lends, and as much again for its parameters. So one file
// has at most half of this machine's memory, and all files together have at most all of it.
//
// With a limit of the address space (RLIMIT_AS), a mapping takes space that the process needs for
// its work. So there is no room until the process has called KeepFree(). Thread-safe.
class SharedMemoryRoom {
 public:
  struct Options {
    size_t max_bytes = MachineMemory();  // of all mappings
    // Returns the free bytes of this process's address space; empty: it has no limit.
    std::function<std::optional<uint64_t>()> free_address_space = FreeAddressSpace;
    // Called once, when the limit of the address space leaves no room. May be null.
    std::function<void(const std::string&)> warn;
  };
  explicit SharedMemoryRoom(Options options) : options_(std::move(options)) {}

  // The max size of one file.
  size_t max_file_bytes() const { return options_.max_bytes / 2; }
  // Sets how much of a limited address space must stay free.
  void KeepFree(uint64_t bytes) { keep_free_bytes_ = bytes; }
  // Takes room for a mapping. Returns false if there is none. Call Release() after the end of the
  // mapping.
  bool Take(size_t bytes);
  void Release(size_t bytes) { taken_bytes_ -= bytes; }

  static size_t MachineMemory();
  static std::optional<uint64_t> FreeAddressSpace();

 private:
  bool FitsAddressSpace(size_t bytes);

  const Options options_;
  std::atomic<uint64_t> keep_free_bytes_ = std::numeric_limits<uint64_t>::max();
  std::atomic<size_t> taken_bytes_ = 0;
  std::atomic<bool> warned_ = false;
};

}  // namespace shoal
