#include "common/memory/memory_needs.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/text/format_bytes.h"
#include "common/rpc/shared/shared_payloads.h"
#include "common/rpc/transport_limits.h"
#include "common/sharding/chunk_limits.h"

namespace shoal {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

constexpr char kProgram[] = "the program";
constexpr char kSharedWithWorkers[] = "shared with workers";
constexpr char kSharedWithPs[] = "shared with ps";

// Program, libraries, threads, connections: measured on empty jobs, and rounded up.
constexpr uint64_t kPsProgramBytes = 64 * kMiB;
constexpr uint64_t kWorkerProgramBytes = 300 * kMiB;
constexpr uint64_t kCoordinatorProgramBytes = 200 * kMiB;

// Bytes per chunk besides its values and applied set: its place, state and readers.
constexpr uint64_t kChunkStateBytes = 512;

// Returns the max bytes that a ps and the workers of its machine share. They count for both. On
// different machines, a ps and a worker share none.
uint64_t SharedBytes(uint64_t peers, uint64_t variables) {
  return 2 * peers * std::min<uint64_t>(kSharedHalfBytes, variables);
}

uint64_t Sum(const std::vector<MemoryNeeds::Part>& parts) {
  uint64_t bytes = 0;
  for (const MemoryNeeds::Part& part : parts) bytes += part.bytes;
  return bytes;
}

std::string Listed(const std::vector<MemoryNeeds::Part>& parts) {
  std::string text;
  for (const MemoryNeeds::Part& part : parts) {
    if (part.bytes == 0) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ", part.what, " ", FormatBytes(part.bytes));
  }
  return text;
}

}  // namespace

uint64_t MemoryNeeds::held_bytes() const { return Sum(held); }

uint64_t MemoryNeeds::program_bytes() const {
  const auto program = std::find_if(held.begin(), held.end(),
                                    [](const Part& part) { return part.what == kProgram; });
  return program == held.end() ? 0 : program->bytes;
}

uint64_t MemoryNeeds::max_bytes() const { return Sum(held) + Sum(temporary); }

uint64_t MemoryNeeds::shared_bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : temporary) {
    if (part.what == kSharedWithWorkers || part.what == kSharedWithPs) bytes += part.bytes;
  }
  return bytes;
}

std::string MemoryNeeds::HeldText() const {
  return absl::StrCat(FormatBytes(held_bytes()), " (", Listed(held), ")");
}

std::string MemoryNeeds::ToText() const {
  if (Sum(temporary) == 0) return HeldText();
  return absl::StrCat(HeldText(), ", at most ", FormatBytes(max_bytes()), " (with ",
                      Listed(temporary), ")");
}

MemoryNeeds PsMemory(int index, const PsShards& shards, int slots, uint64_t window_steps,
                     int workers, uint64_t round_steps) {
  constexpr uint64_t kBytesPerValue = sizeof(float);
  uint64_t pushed = 0, with_slots = 0, largest_chunk = 0;
  for (const Chunk& chunk : shards.chunks) {
    if (chunk.pushed()) pushed += chunk.size * kBytesPerValue;
    if (chunk.has_slots()) with_slots += chunk.size * kBytesPerValue;
    largest_chunk = std::max<uint64_t>(largest_chunk, chunk.size * kBytesPerValue);
  }
  const uint64_t chunks = shards.chunks.size();
  const uint64_t variables = shards.slab_size * kBytesPerValue;
  const uint64_t sums = round_steps > 1 ? pushed : 0;
  const uint64_t versions_before = round_steps > 0 ? pushed : 0;
  return {.task = absl::StrCat("ps ", index),
          .held = {{"variables", variables},
                   {"slots", with_slots * slots},
                   {"sums of rounds", sums},
                   {"versions before", versions_before},
                   {"applied sets", chunks * AppliedSetBytes(window_steps)},
                   {"tables of chunks", chunks * kChunkStateBytes},
                   {kProgram, kPsProgramBytes}},
          .temporary = {{"copies for a checkpoint", pushed + with_slots * slots},
                        {"early gradients", round_steps > 1 ? (round_steps - 1) * pushed : 0},
                        {"sending", std::min<uint64_t>(kMaxWritingBytes, workers * variables)},
                        {"receiving", workers * largest_chunk},
                        {kSharedWithWorkers,
                         SharedBytes(std::min<uint64_t>(kMaxSharedStreams, workers), variables)}}};
}

MemoryNeeds WorkerMemory(const WorkerMemoryOptions& options) {
  return {.task = "worker",
          .held = {{"parameters", options.parameter_bytes},
                   {"gradients", options.parameter_bytes},
                   {"compressed gradients", options.compression_bytes},
                   {"parameters to evaluate", options.evaluates ? options.parameter_bytes : 0},
                   {"inner optimizer", options.inner_bytes},
                   {"momentum", options.momentum_bytes},
                   {"activations", options.activation_bytes},
                   {"batches", options.batch_bytes * options.batches_ahead},
                   {"data", options.data_bytes},
                   {kProgram, kWorkerProgramBytes}},
          .temporary = {{"reading examples", options.reading_bytes},
                        {"receiving", options.ps_count * options.chunk_bytes},
                        {kSharedWithPs, SharedBytes(options.ps_count, options.parameter_bytes)}}};
}

MemoryNeeds CoordinatorMemory() {
  return {.task = "coordinator", .held = {{kProgram, kCoordinatorProgramBytes}}};
}

}  // namespace shoal
