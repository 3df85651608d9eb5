#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "common/rpc/shared/shared_memory_room.h"

namespace shoal {

// Memory that processes of one user on one machine can share: a file without a name that cannot
// shrink. The maker sends an offer. A process with the offer opens the file through /proc while the
// maker lives. It compares a random number in the file, so that it cannot open another file.
//
// Each process can change the memory at any time. So a reader must expect nonsense, as in any
// message, and must read a value only once if it checks it.
class SharedMemory {
 public:
  enum class Access { kRead, kReadAndWrite };

  using Room = std::shared_ptr<SharedMemoryRoom>;

  // Returns null if the kernel gives no memory, or `room` has no space left. The content is 0; a
  // page takes memory once it is touched. Pass no room if this memory replaces other memory of the
  // process.
  static std::shared_ptr<SharedMemory> Create(size_t size_bytes, const Room& room = nullptr);
  // Opens offered memory. Returns null if the offer is from another machine, user or container, is
  // not valid, or exceeds the space of `room`. Requires a room. Never blocks, whatever the maker
  // does.
  static std::shared_ptr<SharedMemory> Open(const std::string& offer, Access access,
                                            const Room& room);

  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::string offer() const;
  // Aligned to a page.
  char* data() const { return reinterpret_cast<char*>(header_ + 1); }
  size_t size_bytes() const { return size_bytes_; }
  // Reserves the memory of [begin, end) now. Returns false if the kernel has none left. A process
  // that touches unreserved memory is killed if the kernel has none left.
  bool Reserve(size_t begin, size_t end) const;

 private:
  struct alignas(4096) Header {
    uint64_t token;
  };

  // Takes ownership of the file. Returns null if the kernel does not map it, or the room has no
  // space for it.
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
