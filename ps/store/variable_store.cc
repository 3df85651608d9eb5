#include "ps/store/variable_store.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/model/moving_average.h"
#include "ps/store/gradient_runs.h"

namespace shoal {
namespace {

int64_t RowSize(const Variable& variable) {
  return variable.shape.empty() ? 1 : ElementCount(variable.shape) / variable.shape[0];
}

// Returns the floats in the first part of the slab, whose chunks have slots: the size of a slab of
// slots.
int64_t SlotSlabSize(const PsShards& shards) {
  int64_t size = 0;
  for (const Chunk& chunk : shards.chunks) {
    if (chunk.has_slots()) size = chunk.slab_offset + chunk.size;
  }
  return size;
}

}  // namespace

VariableStore::VariableStore(Options options)
    : options_(std::move(options)), buffers_(std::make_shared<ValueBuffers>(shards())) {
  const size_t slot_count = options_.optimizer->slot_names().size();
  for (size_t i = 0; i < slot_count; ++i) slot_slabs_.emplace_back(SlotSlabSize(shards()));
  for (int k = 0; k < static_cast<int>(shards().chunks.size()); ++k) {
    const Chunk& chunk = shards().chunks[k];
    State live{.values = buffers_->Take(k), .slots = {}};
    for (size_t i = 0; chunk.has_slots() && i < slot_count; ++i) {
      live.slots.push_back(slot_slabs_[i].data() + chunk.slab_offset);
    }
    chunks_.push_back({std::move(live), AppliedSet(options_.window_steps), nullptr, true, true,
                       DecayRuns(chunk)});
    if (options_.max_round_steps > 0)
      chunks_.back().round = std::make_unique<RoundSum>(chunk.size, options_.max_round_steps);
  }
}

VariableStore::~VariableStore() = default;

std::vector<VariableStore::DecayRun> VariableStore::DecayRuns(const Chunk& chunk) const {
  std::vector<DecayRun> runs;
  for (const ChunkPiece& piece : chunk.pieces) {
    const std::string& name = options_.variables[piece.variable].name;
    const bool decays = !options_.optimizer->decay_exclusions().Excludes(name);
    const size_t begin = piece.chunk_offset;
    if (runs.empty() || runs.back().decays != decays) runs.push_back({begin, begin, decays});
    runs.back().end = begin + piece.size;
  }
  return runs;
}

std::vector<VariableStore::RowRun> VariableStore::RowRuns() {
  std::vector<RowRun> runs;
  for (const Shard& shard : shards().shards) {
    const Variable& variable = options_.variables[shard.variable];
    const uint64_t row_bytes = RowSize(variable) * sizeof(float);
    const auto add = [&](const std::string& tensor, float* slab, std::optional<int> slot) {
      runs.push_back({.tensor = tensor,
                      .shape = variable.shape,
                      .offset_bytes = shard.row_begin * row_bytes,
                      .size_bytes = (shard.row_end - shard.row_begin) * row_bytes,
                      .out = slab + shard.slab_offset,
                      .shard = &shard,
                      .slot = slot});
    };
    add(variable.name, buffers_->slab(), std::nullopt);
    for (size_t i = 0; variable.has_slots() && i < slot_slabs_.size(); ++i) {
      add(options_.optimizer->slot_names()[i] + "/" + variable.name, slot_slabs_[i].data(),
          static_cast<int>(i));
    }
  }
  return runs;
}

void VariableStore::SetApplied(uint64_t base) {
  for (ChunkState& chunk : chunks_) {
    chunk.applied.Reset(base);
    chunk.live.version = base;
  }
}

absl::Status VariableStore::CheckChunk(int chunk) const {
  if (chunk >= 0 && chunk < chunk_count()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("chunk ", chunk, ": ps ", options_.ps_index,
                                                 " has the chunks 0 to ", chunk_count() - 1));
}

absl::Status VariableStore::CheckPushed(int chunk) const {
  SHOAL_RETURN_IF_ERROR(CheckChunk(chunk));
  if (shards().chunks[chunk].pushed()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("chunk ", chunk, " holds frozen variables; it takes no pushes"));
}

absl::Status VariableStore::CheckRound(const std::optional<Round>& round, uint64_t step, int chunk,
                                       uint64_t pulled_version) const {
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", chunk, " of step ", step, ": ", what...));
  };
  const ChunkState& state = chunks_[chunk];
  if (round.has_value() != (state.round != nullptr)) {
    return wrong(round ? "a push of a round, in a job without rounds"
                       : "a push of no round, in a job of rounds");
  }
  if (!round) return absl::OkStatus();
  const absl::Status fits = state.round->Check(*round, step, state.live.version);
  if (!fits.ok()) return wrong(fits.message());
  if (pulled_version != round->first) {
    return wrong("pulled version ", pulled_version, ", but its round begins with ", round->first);
  }
  if (cut_step_ && round->first < *cut_step_ && *cut_step_ < round->end()) {
    return wrong("the cut at step ", *cut_step_, " is within its round, of ", round->count,
                 " steps from ", round->first, " on: no chunk is ever at that step");
  }
  return absl::OkStatus();
}

absl::StatusOr<PushResult> VariableStore::Push(const Message& message, uint64_t step, int chunk,
                                               uint64_t pulled_version,
                                               const std::optional<Round>& round) {
  SHOAL_RETURN_IF_ERROR(CheckPushed(chunk));
  if (message.payload_bytes() != chunk_size(chunk) * sizeof(float)) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", chunk, " of step ", step, ": a push of ", message.payload_bytes(),
                     " bytes, which must have ", chunk_size(chunk) * sizeof(float)));
  }
  return Take(&message, step, chunk, pulled_version, round);
}

absl::StatusOr<PushResult> VariableStore::PushNothing(uint64_t step, int chunk,
                                                      uint64_t pulled_version) {
  SHOAL_RETURN_IF_ERROR(CheckPushed(chunk));
  return Take(nullptr, step, chunk, pulled_version, std::nullopt);
}

absl::StatusOr<PushResult> VariableStore::Take(const Message* gradient, uint64_t step, int chunk,
                                               uint64_t pulled_version,
                                               const std::optional<Round>& round) {
  ChunkState& state = chunks_[chunk];
  if (round && state.round != nullptr && round->first > state.live.version) {
    return absl::OutOfRangeError(absl::StrCat("chunk ", chunk, " of step ", step,
                                              ": its round begins with version ", round->first,
                                              ", but the chunk is only at ", state.live.version));
  }
  if (pulled_version > state.live.version) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", chunk, " of step ", step, ": pulled version ", pulled_version,
                     ", but the chunk is only at ", state.live.version));
  }
  if (state.applied.Contains(step)) {
    ++counters_.repeated;
    return PushResult{.repeated = true, .version = state.live.version};
  }
  if (step >= state.applied.limit()) {
    return absl::OutOfRangeError(absl::StrCat("chunk ", chunk, ": step ", step,
                                              " is beyond the window, which ends at ",
                                              state.applied.limit(), " now"));
  }

  SHOAL_RETURN_IF_ERROR(CheckRound(round, step, chunk, pulled_version));

  const uint64_t staleness = state.live.version - pulled_version;
  const bool was_before_cut = cut_step_ && state.applied_below() < *cut_step_;
  // The gradient to apply now: the pushed one, or in rounds the mean, once all gradients are in.
  const Message* due = gradient;
  UpdateNumbers numbers = NextOf(state.live, staleness);
  if (round) {
    state.values_before = {};
    due = state.round->Add(*round, step, *gradient);
    numbers = {.version = round->end(), .iteration = round->number + 1};
  }
  if (due != nullptr || !round) {
    if (cut_step_ && step >= *cut_step_ && !state.copy && state.cut_values_needed)
      CopyForCut(chunk);  // 5a
    if (round) {
      state.values_before = state.live.values;  // shared: the update goes to another buffer
      state.version_before = state.live.version;
    }
    Apply(due, chunk, numbers, &state.live);  // 5b
    if (cut_step_ && step < *cut_step_ && state.copy)
      Apply(due, chunk, NextOf(state.copy->state, staleness), &state.copy->state);  // 5c
  }
  state.applied.Add(step);  // 5d
  if (was_before_cut && state.applied_below() >= *cut_step_) --chunks_before_cut_;

  if (gradient == nullptr) {
    ++counters_.skipped;
    return PushResult{.skipped = true, .version = state.live.version, .staleness = staleness};
  }
  ++counters_.applied;
  counters_.staleness_sum += staleness;
  counters_.staleness_max = std::max(counters_.staleness_max, staleness);
  return PushResult{.version = state.live.version, .staleness = staleness};
}

// Updates in place if no other holder has the values. Otherwise writes the new values to another
// buffer, which replaces the old one.
void VariableStore::Apply(const Message* gradient, int chunk, UpdateNumbers numbers, State* state) {
  state->version = numbers.version;
  if (gradient == nullptr) return;
  ValueBuffers::Hold target = buffers_->TargetOf(chunk, state->values);
  if (shards().chunks[chunk].rule == UpdateRule::kMovingAverage) {
    Average(*gradient, chunk, *state, target.data());
  } else {
    Optimize(*gradient, chunk, numbers, *state, target.data());
  }
  state->values = std::move(target);
}

// Reads the gradient where it lies. An optimizer that takes whole variables gets a copy in one
// piece.
void VariableStore::Optimize(const Message& gradient, int chunk, UpdateNumbers numbers,
                             const State& state, float* out) {
  const double rate_scale = options_.rate_scale.Of(numbers.iteration, numbers.staleness);
  std::unique_ptr<const Update> updates[2];  // with weight decay: 1
  const float* const values = state.values.data();
  std::vector<float*> slots(state.slots.size());
  const auto apply = [&](size_t offset, std::span<const float> run) {
    for (const DecayRun& part : chunks_[chunk].decay_runs) {
      const size_t begin = std::max(offset, part.begin);
      const size_t end = std::min(offset + run.size(), part.end);
      if (begin >= end) continue;
      std::unique_ptr<const Update>& update = updates[part.decays];
      if (update == nullptr)
        update = options_.optimizer->Prepare(numbers.iteration,
                                             {.decays = part.decays, .rate_scale = rate_scale});
      for (size_t i = 0; i < slots.size(); ++i) slots[i] = state.slots[i] + begin;
      update->Apply(run.subspan(begin - offset, end - begin), {values + begin, end - begin},
                    {out + begin, end - begin}, slots);
    }
  };
  if (!options_.optimizer->takes_whole_variables()) return ForEachRun(gradient, apply);
  std::vector<float> whole;
  whole.reserve(shards().chunks[chunk].size);
  ForEachRun(gradient, [&](size_t, std::span<const float> run) {
    const char* const bytes = reinterpret_cast<const char*>(run.data());  // at any alignment
    const size_t end = whole.size();
    whole.resize(end + run.size());
    std::memcpy(whole.data() + end, bytes, run.size_bytes());
  });
  for (const ChunkPiece& piece : shards().chunks[chunk].pieces) {
    apply(piece.chunk_offset, std::span(whole).subspan(piece.chunk_offset, piece.size));
  }
}

// Each piece of the chunk has a momentum of its own.
void VariableStore::Average(const Message& sample, int chunk, const State& state,
                            float* out) const {
  const float* const values = state.values.data();
  ForEachRun(sample, [&](size_t offset, std::span<const float> run) {
    for (const ChunkPiece& piece : shards().chunks[chunk].pieces) {
      const size_t piece_begin = piece.chunk_offset;
      const size_t begin = std::max(offset, piece_begin);
      const size_t end = std::min(offset + run.size(), piece_begin + piece.size);
      if (begin >= end) continue;
      UpdateMovingAverage(options_.variables[piece.variable].momentum,
                          run.subspan(begin - offset, end - begin), {values + begin, end - begin},
                          {out + begin, end - begin});
    }
  });
}

ChunkSnapshot VariableStore::Snapshot(int chunk, const ValueBuffers::Hold& values,
                                      uint64_t version) const {
  struct Reader {
    std::shared_ptr<const ValueBuffers> buffers;
    ValueBuffers::Hold hold;
  };
  auto reader = std::make_shared<Reader>(Reader{buffers_, values});
  const auto* data = reinterpret_cast<const char*>(values.data());
  return {.version = version,
          .payload = {{data, chunk_size(chunk) * sizeof(float), std::move(reader)}}};
}

absl::StatusOr<ChunkSnapshot> VariableStore::Read(int chunk) const {
  SHOAL_RETURN_IF_ERROR(CheckChunk(chunk));
  return Snapshot(chunk, chunks_[chunk].live);
}

absl::StatusOr<ChunkSnapshot> VariableStore::ReadAhead(int chunk) {
  SHOAL_RETURN_IF_ERROR(CheckChunk(chunk));
  const State& live = chunks_[chunk].live;
  std::unique_ptr<const Update> ahead;
  if (options_.look_ahead > 0 && !live.slots.empty() && live.version > 0) {
    const double rate_scale = options_.rate_scale.Of(live.version, 0);
    ahead = options_.optimizer->PrepareAhead(live.version,
                                             rate_scale * static_cast<double>(options_.look_ahead));
  }
  if (ahead == nullptr) return Snapshot(chunk, live);
  const ValueBuffers::Hold expected = buffers_->Take(chunk);
  const size_t size = chunk_size(chunk);
  ahead->Apply({}, {live.values.data(), size}, {expected.data(), size}, live.slots);
  return Snapshot(chunk, expected, live.version);
}

absl::Status VariableStore::CheckVersion(int chunk, uint64_t version) const {
  SHOAL_RETURN_IF_ERROR(CheckChunk(chunk));
  const ChunkState& state = chunks_[chunk];
  if (!shards().chunks[chunk].pushed() || version == state.live.version) return absl::OkStatus();
  if (version > state.live.version) {
    return absl::FailedPreconditionError(absl::StrCat("chunk ", chunk, ": version ", version,
                                                      " is asked for, but it is only at ",
                                                      state.live.version));
  }
  if (!state.values_before.empty() && version == state.version_before) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("version ", version, " of chunk ", chunk,
                                            " is kept no more, as it is at ", state.live.version,
                                            ": the round that begins with it is complete"));
}

absl::StatusOr<ChunkSnapshot> VariableStore::ReadVersion(int chunk, uint64_t version) const {
  SHOAL_RETURN_IF_ERROR(CheckVersion(chunk, version));
  const ChunkState& state = chunks_[chunk];
  const bool before = shards().chunks[chunk].pushed() && version < state.live.version;
  return before ? Snapshot(chunk, state.values_before, version) : Snapshot(chunk, state.live);
}

size_t VariableStore::early_gradients() const {
  size_t kept = 0;
  for (const ChunkState& chunk : chunks_) kept += chunk.round == nullptr ? 0 : chunk.round->kept();
  return kept;
}

size_t VariableStore::versions_before() const {
  return std::count_if(chunks_.begin(), chunks_.end(),
                       [](const ChunkState& chunk) { return !chunk.values_before.empty(); });
}

uint64_t VariableStore::base() const {
  uint64_t base = std::numeric_limits<uint64_t>::max();
  for (int k = 0; k < chunk_count(); ++k) {
    if (shards().chunks[k].pushed()) base = std::min(base, chunks_[k].applied.base());
  }
  return base;
}

VariableStore::UpdateRange VariableStore::updates() const {
  std::optional<UpdateRange> range;
  for (size_t k = 0; k < chunks_.size(); ++k) {
    if (!shards().chunks[k].pushed()) continue;
    const uint64_t version = chunks_[k].live.version;
    if (!range.has_value()) range = UpdateRange{version, version};
    range->lowest = std::min(range->lowest, version);
    range->highest = std::max(range->highest, version);
  }
  return range.value_or(UpdateRange());
}

std::vector<uint64_t> VariableStore::AppliedAfterBase() const {
  std::vector<uint64_t> steps;
  uint64_t end = std::numeric_limits<uint64_t>::max();
  for (int k = 0; k < chunk_count(); ++k) {
    if (shards().chunks[k].pushed()) end = std::min(end, chunks_[k].applied.end());
  }
  for (uint64_t step = base(); step < end; ++step) {
    bool everywhere = true;
    for (int k = 0; k < chunk_count() && everywhere; ++k) {
      everywhere = !shards().chunks[k].pushed() || chunks_[k].applied.Contains(step);
    }
    if (everywhere) steps.push_back(step);
  }
  return steps;
}

}  // namespace shoal
