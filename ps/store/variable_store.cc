#include "ps/store/variable_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

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
    : options_(std::move(options)),
      buffers_(std::make_shared<ValueBuffers>(shards())),
      chunks_(MakeChunks()),
      updater_({.variables = &options_.variables,
                .shards = &shards(),
                .buffers = buffers_.get(),
                .optimizer = options_.optimizer,
                .rate_scale = options_.rate_scale,
                .look_ahead = options_.look_ahead}),
      cut_({.chunks = &chunks_,
            .variables = &options_.variables,
            .slot_names = &options_.optimizer->slot_names(),
            .buffers = buffers_}) {}

std::vector<StoredChunk> VariableStore::MakeChunks() {
  const size_t slot_count = options_.optimizer->slot_names().size();
  for (size_t i = 0; i < slot_count; ++i) slot_slabs_.emplace_back(SlotSlabSize(shards()));
  std::vector<StoredChunk> chunks;
  for (int k = 0; k < static_cast<int>(shards().chunks.size()); ++k) {
    const Chunk& chunk = shards().chunks[k];
    ChunkState live{.values = buffers_->Take(k), .slots = {}};
    for (size_t i = 0; chunk.has_slots() && i < slot_count; ++i) {
      live.slots.push_back(slot_slabs_[i].data() + chunk.slab_offset);
    }
    chunks.emplace_back(StoredChunk::Options{.layout = &chunk,
                                             .index = k,
                                             .window_steps = options_.window_steps,
                                             .max_round_steps = options_.max_round_steps},
                        std::move(live));
  }
  return chunks;
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
  for (StoredChunk& chunk : chunks_) chunk.SetApplied(base);
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
      absl::StrCat("chunk ", chunk, " holds frozen variables: it accepts no pushes"));
}

absl::StatusOr<PushResult> VariableStore::Push(const Message& message, uint64_t step, int chunk,
                                               uint64_t pulled_version,
                                               const std::optional<Round>& round) {
  SHOAL_RETURN_IF_ERROR(CheckPushed(chunk));
  if (message.payload_bytes() != chunk_size(chunk) * sizeof(float)) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", chunk, " of step ", step, ": a push of ", message.payload_bytes(),
                     " bytes, but the chunk has ", chunk_size(chunk) * sizeof(float)));
  }
  return Take(
      {.gradient = &message, .step = step, .pulled_version = pulled_version, .round = round},
      chunk);
}

absl::StatusOr<PushResult> VariableStore::PushSkip(uint64_t step, int chunk,
                                                   uint64_t pulled_version) {
  SHOAL_RETURN_IF_ERROR(CheckPushed(chunk));
  return Take(
      {.gradient = nullptr, .step = step, .pulled_version = pulled_version, .round = std::nullopt},
      chunk);
}

absl::StatusOr<PushResult> VariableStore::Take(const ChunkPush& push, int chunk) {
  StoredChunk& state = chunks_[chunk];
  SHOAL_RETURN_IF_ERROR(state.Check(push));
  if (state.applied().Contains(push.step)) {
    ++counters_.repeated;
    return PushResult{.repeated = true, .version = state.version()};
  }
  if (push.round) SHOAL_RETURN_IF_ERROR(cut_.CheckRound(*push.round, push.step, chunk));

  const uint64_t staleness = state.version() - push.pulled_version;
  const uint64_t applied_below = state.applied_below();
  if (const std::optional<ChunkUpdate> due = state.Receive(push)) {
    cut_.BeforeUpdate(chunk, push.step);                               // 5a
    updater_.Apply(chunk, *due, &state.live());                        // 5b
    if (ChunkState* const copy = cut_.CopyToUpdate(chunk, push.step))  // 5c
      updater_.Apply(chunk, {due->gradient, NumbersOfNext(*copy, staleness)}, copy);
  }
  state.MarkIn(push.step);  // 5d
  cut_.OnApplied(applied_below, state.applied_below());

  if (push.gradient == nullptr) {
    ++counters_.skipped;
    return PushResult{.skipped = true, .version = state.version(), .staleness = staleness};
  }
  ++counters_.applied;
  counters_.staleness_sum += staleness;
  counters_.staleness_max = std::max(counters_.staleness_max, staleness);
  return PushResult{.version = state.version(), .staleness = staleness};
}

absl::StatusOr<ChunkSnapshot> VariableStore::Read(int chunk) const {
  SHOAL_RETURN_IF_ERROR(CheckChunk(chunk));
  const ChunkState& live = chunks_[chunk].live();
  return Snapshot(chunk, live.values, live.version);
}

absl::StatusOr<ChunkSnapshot> VariableStore::ReadAhead(int chunk) {
  SHOAL_RETURN_IF_ERROR(CheckChunk(chunk));
  const ChunkState& live = chunks_[chunk].live();
  const ValueBuffers::Hold expected = updater_.Extrapolate(chunk, live);
  return Snapshot(chunk, expected.empty() ? live.values : expected, live.version);
}

absl::Status VariableStore::CheckVersion(int chunk, uint64_t version) const {
  SHOAL_RETURN_IF_ERROR(CheckChunk(chunk));
  return chunks_[chunk].CheckVersion(version);
}

absl::StatusOr<ChunkSnapshot> VariableStore::ReadVersion(int chunk, uint64_t version) const {
  SHOAL_RETURN_IF_ERROR(CheckVersion(chunk, version));
  const StoredChunk& state = chunks_[chunk];
  const uint64_t of = state.layout().pushed() ? version : state.version();
  return Snapshot(chunk, state.ValuesAt(version), of);
}

size_t VariableStore::early_gradients() const {
  size_t kept = 0;
  for (const StoredChunk& chunk : chunks_) kept += chunk.early_gradients();
  return kept;
}

size_t VariableStore::versions_before() const {
  return std::count_if(chunks_.begin(), chunks_.end(),
                       [](const StoredChunk& chunk) { return chunk.keeps_version_before(); });
}

uint64_t VariableStore::base() const {
  uint64_t base = std::numeric_limits<uint64_t>::max();
  for (const StoredChunk& chunk : chunks_) {
    if (chunk.layout().pushed()) base = std::min(base, chunk.applied().base());
  }
  return base;
}

VariableStore::UpdateRange VariableStore::updates() const {
  std::optional<UpdateRange> range;
  for (const StoredChunk& chunk : chunks_) {
    if (!chunk.layout().pushed()) continue;
    const uint64_t version = chunk.version();
    if (!range.has_value()) range = UpdateRange{version, version};
    range->lowest = std::min(range->lowest, version);
    range->highest = std::max(range->highest, version);
  }
  return range.value_or(UpdateRange());
}

std::vector<uint64_t> VariableStore::AppliedAfterBase() const {
  std::vector<uint64_t> steps;
  uint64_t end = std::numeric_limits<uint64_t>::max();
  for (const StoredChunk& chunk : chunks_) {
    if (chunk.layout().pushed()) end = std::min(end, chunk.applied().end());
  }
  for (uint64_t step = base(); step < end; ++step) {
    const auto has_it = [step](const StoredChunk& chunk) {
      return !chunk.layout().pushed() || chunk.applied().Contains(step);
    };
    if (std::all_of(chunks_.begin(), chunks_.end(), has_it)) steps.push_back(step);
  }
  return steps;
}

}  // namespace shoal
