#include "ps/store/chunk_updater.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "common/model/moving_average.h"
#include "ps/store/gradient_runs.h"

namespace shoal {

ChunkUpdater::ChunkUpdater(Options options) : options_(std::move(options)) {
  for (const Chunk& chunk : options_.shards->chunks) decay_runs_.push_back(DecayRuns(chunk));
}

std::vector<ChunkUpdater::DecayRun> ChunkUpdater::DecayRuns(const Chunk& chunk) const {
  std::vector<DecayRun> runs;
  for (const ChunkPiece& piece : chunk.pieces) {
    const std::string& name = (*options_.variables)[piece.variable].name;
    const bool decays = !options_.optimizer->decay_exclusions().Excludes(name);
    const size_t begin = piece.chunk_offset;
    if (runs.empty() || runs.back().decays != decays) runs.push_back({begin, begin, decays});
    runs.back().end = begin + piece.size;
  }
  return runs;
}

void ChunkUpdater::Apply(int chunk, const ChunkUpdate& update, ChunkState* state) {
  state->version = update.numbers.version;
  if (update.gradient == nullptr) return;
  ValueBuffers::Hold target = options_.buffers->TargetOf(chunk, state->values);
  if (this->chunk(chunk).rule == UpdateRule::kMovingAverage) {
    Average(chunk, update, *state, target.data());
  } else {
    Optimize(chunk, update, *state, target.data());
  }
  state->values = std::move(target);
}

// Reads the gradient where it lies. An optimizer that takes whole variables gets a copy in one
// piece.
void ChunkUpdater::Optimize(int chunk, const ChunkUpdate& update, const ChunkState& state,
                            float* out) const {
  const UpdateNumbers& numbers = update.numbers;
  const double rate_scale = options_.rate_scale.Of(numbers.iteration, numbers.staleness);
  std::unique_ptr<const Update> updates[2];  // with weight decay: 1
  const float* const values = state.values.data();
  std::vector<float*> slots(state.slots.size());
  const auto apply = [&](size_t offset, std::span<const float> run) {
    for (const DecayRun& part : decay_runs_[chunk]) {
      const size_t begin = std::max(offset, part.begin);
      const size_t end = std::min(offset + run.size(), part.end);
      if (begin >= end) continue;
      std::unique_ptr<const Update>& prepared = updates[part.decays];
      if (prepared == nullptr)
        prepared = options_.optimizer->Prepare(numbers.iteration,
                                               {.decays = part.decays, .rate_scale = rate_scale});
      for (size_t i = 0; i < slots.size(); ++i) slots[i] = state.slots[i] + begin;
      prepared->Apply(run.subspan(begin - offset, end - begin), {values + begin, end - begin},
                      {out + begin, end - begin}, slots);
    }
  };
  if (!options_.optimizer->takes_whole_variables()) return ForEachRun(*update.gradient, apply);
  std::vector<float> whole;
  whole.reserve(this->chunk(chunk).size);
  ForEachRun(*update.gradient, [&](size_t, std::span<const float> run) {
    const char* const bytes = reinterpret_cast<const char*>(run.data());  // at any alignment
    const size_t end = whole.size();
    whole.resize(end + run.size());
    std::memcpy(whole.data() + end, bytes, run.size_bytes());
  });
  for (const ChunkPiece& piece : this->chunk(chunk).pieces) {
    apply(piece.chunk_offset, std::span(whole).subspan(piece.chunk_offset, piece.size));
  }
}

// Each piece of the chunk has a momentum of its own.
void ChunkUpdater::Average(int chunk, const ChunkUpdate& update, const ChunkState& state,
                           float* out) const {
  const float* const values = state.values.data();
  ForEachRun(*update.gradient, [&](size_t offset, std::span<const float> run) {
    for (const ChunkPiece& piece : this->chunk(chunk).pieces) {
      const size_t piece_begin = piece.chunk_offset;
      const size_t begin = std::max(offset, piece_begin);
      const size_t end = std::min(offset + run.size(), piece_begin + piece.size);
      if (begin >= end) continue;
      UpdateMovingAverage((*options_.variables)[piece.variable].momentum,
                          run.subspan(begin - offset, end - begin), {values + begin, end - begin},
                          {out + begin, end - begin});
    }
  });
}

ValueBuffers::Hold ChunkUpdater::Extrapolate(int chunk, const ChunkState& state) {
  if (options_.look_ahead == 0 || state.slots.empty() || state.version == 0) return {};
  const double rate_scale = options_.rate_scale.Of(state.version, 0);
  const std::unique_ptr<const Update> ahead = options_.optimizer->PrepareAhead(
      state.version, rate_scale * static_cast<double>(options_.look_ahead));
  if (ahead == nullptr) return {};
  ValueBuffers::Hold expected = options_.buffers->Take(chunk);
  const size_t size = this->chunk(chunk).size;
  ahead->Apply({}, {state.values.data(), size}, {expected.data(), size}, state.slots);
  return expected;
}

}  // namespace shoal
