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

// How much shared memory a process may have mapped, its own and its peers'. Whoever wants to map
// some takes room for it first. Without room the payloads come with their messages.
//
// Honest workers hold what they lend, and as much again for their parameters. So one file has at
// most half of this machine's memory, and all of them together have at most all of it.
//
// Under a limit of the address space (RLIMIT_AS) a mapping takes what the process needs for its
// work. So there is no room until the process has said how much must stay free. Thread-safe.
class SharedMemoryRoom {
 public:
  struct Options {
    size_t max_bytes = MachineMemory();  // of all mappings
    // Of the address space that this process may still take; none: it is not limited.
    std::function<std::optional<uint64_t>()> free_address_space = FreeAddressSpace;
    // Told once when the limit of the address space leaves no room. May be null.
    std::function<void(const std::string&)> warn;
  };
  explicit SharedMemoryRoom(Options options) : options_(std::move(options)) {}

  // The most that one file may have.
  size_t max_file_bytes() const { return options_.max_bytes / 2; }
  // What must stay free of a limited address space.
  void KeepFree(uint64_t bytes) { keep_free_bytes_ = bytes; }
  // False where there is no room. GiveBack follows the end of the mapping.
  bool Take(size_t bytes);
  void GiveBack(size_t bytes) { taken_bytes_ -= bytes; }

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
