#include "ps/store/value_buffers.h"

#include <algorithm>

namespace shoal {
namespace {

bool IsFree(const ValueBuffers::Buffer& buffer) {
  return buffer.holders.load(std::memory_order_acquire) == 0;
}

}  // namespace

ValueBuffers::ValueBuffers(const PsShards& shards) : slab_(shards.slab_size) {
  for (const Chunk& chunk : shards.chunks) {
    homes_.emplace_back().data = slab_.data() + chunk.slab_offset;
    spare_size_ = std::max<size_t>(spare_size_, chunk.size);
  }
}

ValueBuffers::Hold ValueBuffers::Take(int chunk) {
  if (IsFree(homes_[chunk])) return Hold(&homes_[chunk]);
  auto spare = std::find_if(spares_.begin(), spares_.end(),
                            [](const auto& candidate) { return IsFree(candidate->buffer); });
  if (spare == spares_.end()) {
    spares_.push_back(std::make_unique<Spare>(spare_size_));
  } else {
    std::rotate(spare, spare + 1, spares_.end());
  }
  spares_.back()->idle = false;
  return Hold(&spares_.back()->buffer);
}

ValueBuffers::Hold ValueBuffers::TargetOf(int chunk, const Hold& current) {
  // Every chunk has been updated about twice: enough to have gone home.
  if (++updates_ >= 2 * homes_.size()) EndRound();
  if (current.sole() && (current.is(homes_[chunk]) || !IsFree(homes_[chunk]))) return current;
  return Take(chunk);
}

void ValueBuffers::EndRound() {
  updates_ = 0;
  std::erase_if(spares_, [](const auto& spare) { return spare->idle && IsFree(spare->buffer); });
  for (const auto& spare : spares_) spare->idle = true;
}

}  // namespace shoal
