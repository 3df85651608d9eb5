#include "ps/store/stored_chunk.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {

StoredChunk::StoredChunk(const Options& options, ChunkState live)
    : options_(options), live_(std::move(live)), applied_(options.window_steps) {
  if (options.max_round_steps > 0)
    round_ = std::make_unique<RoundSum>(size(), options.max_round_steps);
}

absl::Status StoredChunk::Check(const ChunkPush& push) const {
  if (push.round && round_ != nullptr && push.round->first > live_.version) {
    return absl::OutOfRangeError(absl::StrCat("chunk ", options_.index, " of step ", push.step,
                                              ": its round begins with version ", push.round->first,
                                              ", but the chunk is only at ", live_.version));
  }
  if (push.pulled_version > live_.version) {
    return absl::InvalidArgumentError(absl::StrCat("chunk ", options_.index, " of step ", push.step,
                                                   ": pulled version ", push.pulled_version,
                                                   ", but the chunk is only at ", live_.version));
  }
  if (applied_.Contains(push.step)) return absl::OkStatus();
  if (push.step >= applied_.limit()) {
    return absl::OutOfRangeError(absl::StrCat("chunk ", options_.index, " of step ", push.step,
                                              ": the step is beyond the window, which ends at ",
                                              applied_.limit()));
  }
  return CheckRound(push);
}

absl::Status StoredChunk::CheckRound(const ChunkPush& push) const {
  const auto wrong = [&](const auto&... what) {
    return absl::InvalidArgumentError(
        absl::StrCat("chunk ", options_.index, " of step ", push.step, ": ", what...));
  };
  if (push.round.has_value() != (round_ != nullptr)) {
    return wrong(push.round ? "the push names a round, but the job has no rounds"
                            : "the push names no round, but the job has rounds");
  }
  if (!push.round) return absl::OkStatus();
  const absl::Status fits = round_->Check(*push.round, push.step, live_.version);
  if (!fits.ok()) return wrong(fits.message());
  if (push.pulled_version == push.round->first) return absl::OkStatus();
  return wrong("pulled version ", push.pulled_version, ", but the round begins with ",
               push.round->first);
}

std::optional<ChunkUpdate> StoredChunk::Receive(const ChunkPush& push) {
  if (!push.round) {
    const uint64_t staleness = live_.version - push.pulled_version;
    return ChunkUpdate{push.gradient, NumbersOfNext(live_, staleness)};
  }
  values_before_ = {};
  const Message* const mean = round_->Add(*push.round, push.step, *push.gradient);
  if (mean == nullptr) return std::nullopt;
  values_before_ = live_.values;  // shared: the update goes to another buffer
  version_before_ = live_.version;
  return ChunkUpdate{mean, {.version = push.round->end(), .iteration = push.round->number + 1}};
}

void StoredChunk::SetApplied(uint64_t base) {
  applied_.Reset(base);
  live_.version = base;
}

absl::Status StoredChunk::CheckVersion(uint64_t version) const {
  if (!layout().pushed() || version == live_.version) return absl::OkStatus();
  if (version > live_.version) {
    return absl::FailedPreconditionError(
        absl::StrCat("chunk ", options_.index, ": version ", version,
                     " does not exist yet, the chunk is at ", live_.version));
  }
  if (keeps_version_before() && version == version_before_) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("version ", version, " of chunk ", options_.index,
                                            " is dropped: the chunk is at ", live_.version,
                                            ", and the round of that version is complete"));
}

const ValueBuffers::Hold& StoredChunk::ValuesAt(uint64_t version) const {
  const bool before = layout().pushed() && version < live_.version;
  return before ? values_before_ : live_.values;
}

}  // namespace shoal
