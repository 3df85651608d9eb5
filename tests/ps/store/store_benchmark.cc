// How fast a store applies gradients, in bytes of values per second, over a slab larger than the
// caches:
//   ps_store_benchmark
// Each applied float moves 16 bytes of memory with momentum (gradient, values, velocity in; values,
// velocity out), 28 with Adam. With readers, every chunk is held when its next update comes.
#include <benchmark/benchmark.h>

#include "ps/store/store_loading.h"
#include "ps/store/variable_store.h"

namespace shoal {
namespace {

constexpr int64_t kFloats = 32 << 20;

void Apply(benchmark::State& state, const std::string& optimizer, bool readers) {
  const std::vector<Variable> variables = {
      {.name = "kernel", .shape = {kFloats / 1024, 1024}, .initializer = {}}};
  VariableStore store({.variables = variables,
                       .shard_map = ShardMap(variables, 1, {}),
                       .optimizer = MakeOptimizer(optimizer).value()});
  FillFromSeed(&store);
  const int chunks = store.chunk_count();
  // As many gradients as chunks: they come from memory, as received ones do.
  std::vector<Message> gradients;
  std::vector<float> memory(kFloats, 0.001f);
  for (int k = 0; k < chunks; ++k) {
    const Slice slice{reinterpret_cast<const char*>(memory.data() + k * store.chunk_size(0)),
                      store.chunk_size(k) * sizeof(float), nullptr};
    gradients.push_back({.fields = {}, .payload = {slice}});
  }
  uint64_t step = 0;
  for (auto _ : state) {
    for (int k = 0; k < chunks; ++k) {
      absl::StatusOr<ChunkSnapshot> reader;
      if (readers) reader = store.Read(k);
      benchmark::DoNotOptimize(store.Push(gradients[k], step, k, step)->version);
    }
    ++step;
  }
  state.SetBytesProcessed(state.iterations() * kFloats * sizeof(float));
}

constexpr char kMomentum[] = R"({"class_name": "SGD", "config": {"momentum": 0.9}})";
constexpr char kAdam[] = "\"adam\"";

BENCHMARK_CAPTURE(Apply, momentum, kMomentum, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Apply, momentum_with_readers, kMomentum, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Apply, adam, kAdam, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Apply, adam_with_readers, kAdam, true)->Unit(benchmark::kMillisecond);

// The machine's limit for the same traffic as momentum: two streams read and written, one read.
void Memory(benchmark::State& state) {
  std::vector<float> a(kFloats, 1), b(kFloats, 1), c(kFloats, 1);
  for (auto _ : state) {
    for (int64_t i = 0; i < kFloats; ++i) {
      b[i] += a[i];
      c[i] += b[i];
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kFloats * sizeof(float));
}
BENCHMARK(Memory)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shoal
