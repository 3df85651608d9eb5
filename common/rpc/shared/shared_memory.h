#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/rpc/shared/shared_memory_room.h"

namespace shoal {

// Memory that processes of one user on one machine may have in common: a file without a name or a
// way to shrink. Who makes it offers it; who is told the offer opens the file through /proc, as
// long as the maker lives, and compares a random number in it, so that it can be no other one.
//
// Each can change what it has with others at any time: who reads it may be told nonsense, as by any
// message, and fetches once what is to be checked.
class SharedMemory {
 public:
  enum class Access { kRead, kReadAndWrite };

  using Room = std::shared_ptr<SharedMemoryRoom>;

  // Null where the kernel gives none, or `room` has no more. The content is 0, and takes memory
  // where it is touched. Without a room the memory is in the place of other memory of this process.
  static std::shared_ptr<SharedMemory> Create(size_t size_bytes, const Room& room = nullptr);
  // Null where it is not to be had: of another machine, user or container, not an offer at all, or
  // larger than `room` has space for, which is not null. Does not wait, whatever the maker does.
  static std::shared_ptr<SharedMemory> Open(const std::string& offer, Access access,
                                            const Room& room);

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::string offer() const;
  // Aligned to a page.
  char* data() const { return reinterpret_cast<char*>(header_ + 1); }
  size_t size_bytes() const { return size_bytes_; }
  // That the kernel gives the memory of [begin, end) now, if it has it: who touches what it has not
  // given is killed where there is none left.
  bool Reserve(size_t begin, size_t end) const;

 private:
  struct alignas(4096) Header {
    uint64_t token;
  };

  // Takes the file. Null where the kernel does not map it, or the room has no space for it.
  static std::shared_ptr<SharedMemory> Map(int file, size_t size_bytes, Access access,
                                           const Room& room);
  SharedMemory(int file, Header* header, size_t size_bytes, Room room)
      : file_(file), header_(header), size_bytes_(size_bytes), room_(std::move(room)) {}

  const int file_;
  Header* const header_;  // the first page
  const size_t size_bytes_;
  const Room room_;  // may be null
};

}  // namespace shoal
