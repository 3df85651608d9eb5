// The cut in progress of a VariableStore: its copies of chunks, and reads of them.

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "ps/store/variable_store.h"

namespace shoal {

bool VariableStore::StartCut(uint64_t cut_step, uint64_t* highest_step) {
  uint64_t end = 0;
  int before_cut = 0;
  for (int k = 0; k < chunk_count(); ++k) {
    if (!shards().chunks[k].pushed()) continue;
    const ChunkState& chunk = chunks_[k];
    const bool waits = chunk.round != nullptr && chunk.round->under_way();
    end = std::max(end, waits ? chunk.live.version : chunk.applied.end());
    if (chunk.applied_below() < cut_step) ++before_cut;
  }
  if (end > cut_step) {
    *highest_step = end - 1;
    return false;
  }
  EndCut();
  cut_step_ = cut_step;
  chunks_before_cut_ = before_cut;
  return true;
}

// Shares the values, and copies nothing: the next update writes to a fresh buffer.
void VariableStore::CopyForCut(int chunk) {
  const State& live = chunks_[chunk].live;
  const size_t size = chunk_size(chunk);
  const size_t stride = (size + 15) / 16 * 16;
  auto copy = std::make_unique<Copy>();
  const size_t slots = chunks_[chunk].cut_slots_needed ? live.slots.size() : 0;
  if (slots > 0) copy->slot_memory = AlignedBuffer(stride * slots);
  copy->state = {.values = live.values, .slots = {}, .version = live.version};
  for (size_t i = 0; i < slots; ++i) {
    float* const slot = copy->slot_memory.data() + i * stride;
    std::memcpy(slot, live.slots[i], size * sizeof(float));
    copy->state.slots.push_back(slot);
  }
  chunks_[chunk].copy = std::move(copy);
}

const VariableStore::State& VariableStore::CutState(int chunk) const {
  const ChunkState& state = chunks_[chunk];
  return state.copy ? state.copy->state : state.live;
}

absl::StatusOr<ChunkSnapshot> VariableStore::ReadCut(int chunk, uint64_t cut_step) const {
  SHOAL_RETURN_IF_ERROR(CheckChunk(chunk));
  if (cut_step_ != cut_step) {
    return absl::FailedPreconditionError(absl::StrCat("no cut at step ", cut_step, " is held"));
  }
  if (!CutReady()) {
    return absl::FailedPreconditionError(absl::StrCat("the cut at step ", cut_step,
                                                      " is not ready: ", chunks_before_cut_,
                                                      " chunks lack steps below it"));
  }
  if (!chunks_[chunk].cut_values_needed) {
    return absl::FailedPreconditionError(
        absl::StrCat("chunk ", chunk, " of the cut at step ", cut_step, " is not held any more"));
  }
  return Snapshot(chunk, CutState(chunk));
}

std::vector<VariableStore::CutPiece> VariableStore::CopyCutChunk(int chunk) const {
  const State& state = CutState(chunk);
  const std::vector<std::string>& slot_names = options_.optimizer->slot_names();
  std::vector<CutPiece> pieces;
  const auto copy = [&](const std::string& prefix, const float* values) {
    for (const ChunkPiece& piece : shards().chunks[chunk].pieces) {
      const float* const begin = values + piece.chunk_offset;
      pieces.push_back({prefix + options_.variables[piece.variable].name,
                        piece.variable_offset * sizeof(float),
                        {begin, begin + piece.size}});
    }
  };
  copy("", state.values.data());
  for (size_t i = 0; i < state.slots.size(); ++i) copy(slot_names[i] + "/", state.slots[i]);
  return pieces;
}

std::span<const float> VariableStore::CutPart(int chunk, int part) const {
  const State& state = CutState(chunk);
  const size_t size = chunk_size(chunk);
  const bool needed =
      part == 0 ? chunks_[chunk].cut_values_needed : chunks_[chunk].cut_slots_needed;
  if (!needed) return {};
  if (part == 0) return {state.values.data(), size};
  if (part < 0 || part > static_cast<int>(state.slots.size())) return {};
  return {state.slots[part - 1], size};
}

void VariableStore::ReleaseCut(int chunk, bool values) {
  ChunkState& state = chunks_[chunk];
  state.cut_slots_needed = false;
  if (values) state.cut_values_needed = false;
  if (state.copy == nullptr) return;
  if (values) return state.copy.reset();
  // A ready cut has all steps below it, so no update of them comes.
  state.copy->state.slots.clear();
  state.copy->slot_memory = AlignedBuffer();
}

void VariableStore::EndCut() {
  for (ChunkState& chunk : chunks_) {
    chunk.copy.reset();
    chunk.cut_slots_needed = chunk.cut_values_needed = true;
  }
  cut_step_.reset();
  chunks_before_cut_ = 0;
}

size_t VariableStore::cut_copies() const {
  return std::count_if(chunks_.begin(), chunks_.end(),
                       [](const ChunkState& chunk) { return chunk.copy != nullptr; });
}

int64_t VariableStore::cut_slot_floats() const {
  int64_t floats = 0;
  for (int k = 0; k < chunk_count(); ++k) {
    if (chunks_[k].copy != nullptr)
      floats += chunk_size(k) * static_cast<int64_t>(chunks_[k].copy->state.slots.size());
  }
  return floats;
}

}  // namespace shoal
