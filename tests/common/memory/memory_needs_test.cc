#include "common/memory/memory_needs.h"

#include <gmock/gmock.h>

namespace shoal {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t PartOf(const std::vector<MemoryNeeds::Part>& parts, const std::string& what) {
  for (const MemoryNeeds::Part& part : parts) {
    if (part.what == what) return part.bytes;
  }
  ADD_FAILURE() << "no part: " << what;
  return 0;
}

TEST(MemoryNeedsTest, APsHoldsVariablesSlotsAndAppliedSets) {
  const std::vector<Variable> variables = {
      {.name = "w", .shape = {8 << 18}},
      {.name = "mean", .shape = {1 << 18}, .rule = UpdateRule::kMovingAverage},
      {.name = "fixed", .shape = {2 << 18}, .rule = UpdateRule::kFrozen}};
  const ShardMap map(variables, 1, {.chunk_bytes = 1 << 20});
  const MemoryNeeds needs = PsMemory(0, map.ps(0), /*slots=*/2, /*window_steps=*/4096, 3);
  EXPECT_EQ(needs.task, "ps 0");
  EXPECT_EQ(PartOf(needs.held, "variables"), 11 * kMiB);
  EXPECT_EQ(PartOf(needs.held, "slots"), 16 * kMiB) << "only what the optimizer updates has slots";
  EXPECT_EQ(PartOf(needs.held, "applied sets"), 11 * 512u);
  EXPECT_EQ(PartOf(needs.temporary, "copies for a checkpoint"), 25 * kMiB) << "of what is pushed";
  EXPECT_EQ(PartOf(needs.temporary, "receiving"), 3 * kMiB);
  EXPECT_EQ(PartOf(needs.temporary, "sending"), 33 * kMiB);
  EXPECT_EQ(PartOf(needs.temporary, "shared with workers"), 66 * kMiB);
  EXPECT_EQ(needs.max_bytes(), needs.held_bytes() + 127 * kMiB);
  const MemoryNeeds crowded = PsMemory(0, map.ps(0), 2, 4096, 1000);
  EXPECT_EQ(PartOf(crowded.temporary, "sending"), 256 * kMiB) << "however many workers there are";
  EXPECT_EQ(PartOf(crowded.temporary, "shared with workers"), 2 * 16 * 11 * kMiB) << "the same";
}

TEST(MemoryNeedsTest, APsOfRoundsHoldsSumsVersionsBeforeAndEarlyGradients) {
  const std::vector<Variable> variables = {
      {.name = "w", .shape = {8 << 18}},
      {.name = "fixed", .shape = {2 << 18}, .rule = UpdateRule::kFrozen}};
  const ShardMap map(variables, 1, {.chunk_bytes = 1 << 20});
  const MemoryNeeds async = PsMemory(0, map.ps(0), 2, 4096, 3);
  const MemoryNeeds rounds = PsMemory(0, map.ps(0), 2, 4096, 3, /*round_steps=*/4);
  EXPECT_EQ(PartOf(rounds.held, "sums of rounds"), 8 * kMiB);
  EXPECT_EQ(PartOf(rounds.held, "versions before"), 8 * kMiB);
  EXPECT_EQ(PartOf(rounds.temporary, "early gradients"), 24 * kMiB);
  EXPECT_EQ(rounds.max_bytes(), async.max_bytes() + 40 * kMiB);
  const MemoryNeeds alone = PsMemory(0, map.ps(0), 2, 4096, 3, /*round_steps=*/1);
  EXPECT_EQ(alone.max_bytes(), async.max_bytes() + 8 * kMiB);
}

TEST(MemoryNeedsTest, AWorkerHoldsParametersTwiceAndOnceMoreToEvaluate) {
  const WorkerMemoryOptions options = {.parameter_bytes = 100 * kMiB,
                                       .activation_bytes = 7 * kMiB,
                                       .batch_bytes = 2 * kMiB,
                                       .batches_ahead = 6,
                                       .data_bytes = 5 * kMiB,
                                       .reading_bytes = 30 * kMiB,
                                       .chunk_bytes = kMiB,
                                       .ps_count = 2};
  const MemoryNeeds needs = WorkerMemory(options);
  EXPECT_EQ(needs.held_bytes() - PartOf(needs.held, "the program"), 224 * kMiB);
  EXPECT_EQ(needs.max_bytes(), needs.held_bytes() + 32 * kMiB + 2 * 2 * 16 * kMiB);
  WorkerMemoryOptions evaluating = options;
  evaluating.evaluates = true;
  EXPECT_EQ(WorkerMemory(evaluating).held_bytes(), needs.held_bytes() + 100 * kMiB);
}

TEST(MemoryNeedsTest, SaysWhatItIsTheSumOf) {
  const MemoryNeeds needs{.task = "ps 1",
                          .held = {{"variables", 3 * kMiB}, {"slots", 0}, {"the program", kMiB}},
                          .temporary = {{"sending", 2 * kMiB}}};
  EXPECT_EQ(needs.HeldText(), "4.0 MiB (variables 3.0 MiB, the program 1.0 MiB)");
  EXPECT_EQ(needs.ToText(),
            "4.0 MiB (variables 3.0 MiB, the program 1.0 MiB), at most 6.0 MiB (with sending "
            "2.0 MiB)");
}

}  // namespace
}  // namespace shoal
