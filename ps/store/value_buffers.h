#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "common/sharding/shard_map.h"
#include "ps/store/aligned_buffer.h"

namespace shoal {

// The memory in which the values of chunks lie: one slab, in which each chunk has its home, and
// spare buffers of the largest chunk's size. A chunk that has readers is updated into another
// buffer, its home if that is free, else a spare, which is made when none is free: so there are
// never more spares than buffers that are being read or copied. Chunks go home when they can, and
// spares that were not taken for two rounds of updates are given back. Not thread-safe, but for
// ending a Hold.
class ValueBuffers {
 public:
  struct Buffer {
    float* data = nullptr;
    std::atomic<int> holders{0};
  };

  // Keeps a buffer from being taken; many can hold the same one. Any thread may end it.
  class Hold {
   public:
    Hold() = default;
    explicit Hold(Buffer* buffer) : buffer_(buffer) {
      if (buffer_ != nullptr) buffer_->holders.fetch_add(1, std::memory_order_relaxed);
    }
    Hold(const Hold& other) : Hold(other.buffer_) {}
    Hold(Hold&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
    Hold& operator=(Hold other) noexcept {
      std::swap(buffer_, other.buffer_);
      return *this;
    }
    ~Hold() {
      // Released: what this holder has read was read before anybody writes.
      if (buffer_ != nullptr) buffer_->holders.fetch_sub(1, std::memory_order_release);
    }
    bool empty() const { return buffer_ == nullptr; }
    float* data() const { return buffer_->data; }
    bool is(const Buffer& buffer) const { return buffer_ == &buffer; }
    // Nobody else holds the buffer, so that it may be written.
    bool sole() const { return buffer_->holders.load(std::memory_order_acquire) == 1; }

   private:
    Buffer* buffer_ = nullptr;
  };

  explicit ValueBuffers(const PsShards& shards);

  float* slab() const { return slab_.data(); }
  // A buffer for `chunk` that nobody held. Its contents are arbitrary.
  Hold Take(int chunk);
  // Where the next values of `chunk` are to be written, which now lie in `current`: that itself if
  // nobody else holds it and it is the home or cannot go there; else a buffer that nobody held. To
  // be asked before each update.
  Hold TargetOf(int chunk, const Hold& current);
  size_t spare_count() const { return spares_.size(); }

 private:
  struct Spare {
    explicit Spare(size_t size) : memory(size) { buffer.data = memory.data(); }
    AlignedBuffer memory;
    Buffer buffer;
    bool idle = false;  // not taken since the last round began
  };

  // Gives back the spares that were idle for a whole round.
  void EndRound();

  AlignedBuffer slab_;
  std::deque<Buffer> homes_;
  size_t spare_size_ = 0;
  std::deque<std::unique_ptr<Spare>> spares_;  // the one taken longest ago first
  size_t updates_ = 0;                         // of this round
};

}  // namespace shoal
