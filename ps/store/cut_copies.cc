#include "ps/store/cut_copies.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {

CutCopies::CutCopies(Options options)
    : options_(std::move(options)), entries_(options_.chunks->size()) {}

std::optional<uint64_t> CutCopies::Start(uint64_t step) {
  uint64_t end = 0;
  int behind = 0;
  for (const StoredChunk& chunk : *options_.chunks) {
    if (!chunk.layout().pushed()) continue;
    end = std::max(end, chunk.applied_end());
    if (chunk.applied_below() < step) ++behind;
  }
  if (end > step) return end - 1;
  End();
  step_ = step;
  chunks_behind_ = behind;
  return std::nullopt;
}

void CutCopies::End() {
  for (Entry& entry : entries_) entry = Entry();
  step_.reset();
  chunks_behind_ = 0;
}

absl::Status CutCopies::CheckRound(const Round& round, uint64_t step, int chunk) const {
  if (!step_ || round.first >= *step_ || *step_ >= round.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("chunk ", chunk, " of step ", step, ": its round has the steps ", round.first,
                   " to ", round.end() - 1, ", and the cut at step ", *step_, " would divide it"));
}

// Shares the values, and copies nothing: the next update writes to a fresh buffer.
void CutCopies::Copy(int chunk) {
  const ChunkState& live = (*options_.chunks)[chunk].live();
  const size_t size = (*options_.chunks)[chunk].size();
  const size_t stride = (size + 15) / 16 * 16;
  auto copy = std::make_unique<ChunkCopy>();
  const size_t slots = entries_[chunk].slots_needed ? live.slots.size() : 0;
  if (slots > 0) copy->slot_memory = AlignedBuffer(stride * slots);
  copy->state = {.values = live.values, .slots = {}, .version = live.version};
  for (size_t i = 0; i < slots; ++i) {
    float* const slot = copy->slot_memory.data() + i * stride;
    std::memcpy(slot, live.slots[i], size * sizeof(float));
    copy->state.slots.push_back(slot);
  }
  entries_[chunk].copy = std::move(copy);
}

absl::StatusOr<ChunkSnapshot> CutCopies::Read(int chunk, uint64_t step) const {
  if (chunk < 0 || chunk >= static_cast<int>(entries_.size())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "chunk ", chunk, ": this ps has the chunks 0 to ", static_cast<int>(entries_.size()) - 1));
  }
  if (step_ != step)
    return absl::FailedPreconditionError(absl::StrCat("no cut at step ", step, " is held"));
  if (!Ready()) {
    return absl::FailedPreconditionError(absl::StrCat("the cut at step ", step,
                                                      " is not ready: ", chunks_behind_,
                                                      " chunks lack steps below it"));
  }
  if (!entries_[chunk].values_needed) {
    return absl::FailedPreconditionError(
        absl::StrCat("chunk ", chunk, " of the cut at step ", step, " is dropped"));
  }
  const ChunkState& state = StateOf(chunk);
  return MakeSnapshot(options_.buffers, state.values, (*options_.chunks)[chunk].layout().size,
                      state.version);
}

std::vector<CutCopies::Piece> CutCopies::CopyPieces(int chunk) const {
  const ChunkState& state = StateOf(chunk);
  std::vector<Piece> pieces;
  const auto copy = [&](const std::string& prefix, const float* values) {
    for (const ChunkPiece& piece : (*options_.chunks)[chunk].layout().pieces) {
      const float* const begin = values + piece.chunk_offset;
      pieces.push_back({prefix + (*options_.variables)[piece.variable].name,
                        piece.variable_offset * sizeof(float),
                        {begin, begin + piece.size}});
    }
  };
  copy("", state.values.data());
  for (size_t i = 0; i < state.slots.size(); ++i)
    copy((*options_.slot_names)[i] + "/", state.slots[i]);
  return pieces;
}

std::span<const float> CutCopies::Part(int chunk, int part) const {
  const ChunkState& state = StateOf(chunk);
  const size_t size = (*options_.chunks)[chunk].size();
  const bool needed = part == 0 ? entries_[chunk].values_needed : entries_[chunk].slots_needed;
  if (!needed) return {};
  if (part == 0) return {state.values.data(), size};
  if (part < 0 || part > static_cast<int>(state.slots.size())) return {};
  return {state.slots[part - 1], size};
}

void CutCopies::DropSlots(int chunk) {
  Entry& entry = entries_[chunk];
  entry.slots_needed = false;
  if (entry.copy == nullptr) return;
  // A ready cut has all steps below it, so no update of them comes.
  entry.copy->state.slots.clear();
  entry.copy->slot_memory = AlignedBuffer();
}

void CutCopies::DropChunk(int chunk) {
  entries_[chunk] = {.copy = nullptr, .slots_needed = false, .values_needed = false};
}

}  // namespace shoal
