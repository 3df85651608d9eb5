#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "common/sharding/shard_map.h"
#include "ps/store/aligned_buffer.h"

namespace shoal {

// The memory of the chunks' values: one slab, in which each chunk has its home, and spare buffers
// of the largest chunk's size. A chunk that has readers is updated into another buffer: its home if
// that is free, otherwise a spare. A spare is made when none is free. There are never more spares
// than buffers that are read or copied. Chunks return home when they can. Spares that no chunk
// takes for two rounds of updates are freed. Not thread-safe, but any thread may end a Hold.
class ValueBuffers {
 public:
  struct Buffer {
    float* data = nullptr;
    std::atomic<int> holders{0};
  };

  // Keeps a buffer from being taken. Many can hold the same one, and any thread may end a hold.
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
      // Release order: this holder's reads come before the next write.
      if (buffer_ != nullptr) buffer_->holders.fetch_sub(1, std::memory_order_release);
    }
    bool empty() const { return buffer_ == nullptr; }
    float* data() const { return buffer_->data; }
    bool is(const Buffer& buffer) const { return buffer_ == &buffer; }
    // True if there is no other holder. This one may then write the buffer.
    bool sole() const { return buffer_->holders.load(std::memory_order_acquire) == 1; }

   private:
    Buffer* buffer_ = nullptr;
  };

  explicit ValueBuffers(const PsShards& shards);

  float* slab() const { return slab_.data(); }
  // Returns a free buffer for `chunk`, with arbitrary contents.
  Hold Take(int chunk);
  // Returns the buffer for the next values of `chunk`, which now lie in `current`. Returns
  // `current` itself if it has no other holder, and it is the home or the home is taken. Otherwise
  // returns a free buffer. Call it before each update.
  Hold TargetOf(int chunk, const Hold& current);
  size_t spare_count() const { return spares_.size(); }

 private:
  struct Spare {
    explicit Spare(size_t size) : memory(size) { buffer.data = memory.data(); }
    AlignedBuffer memory;
    Buffer buffer;
    bool idle = false;  // not taken since the last round began
  };

  // Frees the spares that were idle for a whole round.
  void EndRound();

  AlignedBuffer slab_;
  std::deque<Buffer> homes_;
  size_t spare_size_ = 0;
  std::deque<std::unique_ptr<Spare>> spares_;  // least recently taken first
  size_t updates_ = 0;                         // of this round
};

}  // namespace shoal
