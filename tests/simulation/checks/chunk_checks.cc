#include "tests/simulation/checks/chunk_checks.h"

#include <optional>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/ps/store/applied_steps.h"
#include "tests/simulation/expected_sums.h"

namespace shoal {

void ChunkChecks::Check(const SimulatedProcess& process, const VariableStore& store,
                        int index) const {
  const StoredChunk& stored = store.chunk(index);
  const AppliedSet& applied = stored.applied();
  const Chunk& chunk = stored.layout();
  if (!chunk.pushed()) {
    if (CountSteps(applied) != applied.base())
      world_.Fail("a chunk of frozen variables was updated");
    return;
  }
  CheckSteps(process, applied, stored.version(), index);
  // Steps of a round that is not whole are not in the values yet.
  const uint64_t below = job_.rounds().has_value() ? stored.version() : applied.base();
  std::vector<uint64_t> after;
  if (!job_.rounds().has_value()) after = StepsAfterBase(applied);
  std::vector<std::span<const float>> slots;
  if (chunk.has_slots()) {
    for (size_t slot = 0; slot < job_.workload().sums_slots().size(); ++slot)
      slots.push_back(stored.slot(static_cast<int>(slot)));
  }
  if (const absl::Status buffer = job_.CheckBuffer(slots, stored.version()); !buffer.ok())
    world_.Fail(absl::StrCat(process.name(), " chunk ", index, " ", buffer.message()));
  for (const ChunkPiece& piece : chunk.pieces) {
    for (int64_t i = 0; i < piece.size; ++i) {
      const int64_t element = piece.variable_offset + i;
      float expected = job_.sums().Below(below, piece.variable, element);
      for (const uint64_t step : after)
        expected += job_.sums().Addend(step, piece.variable, element);
      const float sum = job_.SumOf(slots, stored.values(), piece.chunk_offset + i);
      if (sum == expected) continue;
      world_.Fail(absl::StrFormat(
          "%s chunk %d is %.9g at %d, but the steps below %d and %d after it make %.9g",
          process.name(), index, sum, i, below, after.size(), expected));
      return;
    }
  }
}

void ChunkChecks::CheckSteps(const SimulatedProcess& process, const AppliedSet& applied,
                             uint64_t version, int index) const {
  if (applied.end() > job_.workload().ending.last_step)
    world_.Fail("a step beyond the end was applied");
  const std::optional<RoundPlan>& rounds = job_.rounds();
  if (!rounds.has_value()) {
    if (CountSteps(applied) == version) return;
    return world_.Fail(absl::StrCat(process.name(), " chunk ", index, " has had ", version,
                                    " updates of ", CountSteps(applied), " steps"));
  }
  const uint64_t end = rounds->NextStart(version + 1);
  bool whole = rounds->StartsAt(version) && applied.end() <= end;
  for (uint64_t step = applied.base(); step < version; ++step)
    whole = whole && applied.Contains(step);
  if (whole && !(applied.base() >= end && end > version)) return;
  world_.Fail(absl::StrCat(process.name(), " chunk ", index, " is at version ", version,
                           ", and has in the steps below ", applied.base(), " and some below ",
                           applied.end(), ": no whole rounds, or more than the round after them"));
}

}  // namespace shoal
