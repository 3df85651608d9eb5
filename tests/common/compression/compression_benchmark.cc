// Encoding and decoding of a chunk of 1 MiB, beside a copy of it, and the time that its float32
// takes over a link of 1 Gbit/s: 8.4 ms.
//   build/release/tests/common/compression/compression_benchmark
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/compression/codec.h"

namespace shoal {
namespace {

constexpr size_t kValues = (size_t{1} << 20) / sizeof(float);

std::vector<float> Gradient() {
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(kValues);
  for (float& x : values) x = 1e-3f * normal(random);
  return values;
}

void Encode(benchmark::State& state, const char* config) {
  const auto codec = *MakeCodec(config, Direction::kPush);
  const std::vector<float> values = Gradient();
  std::string bytes(codec->EncodedBytes(kValues), '\0');
  for (auto unused : state) {
    codec->Encode(values, bytes.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) << 20);
}

void Decode(benchmark::State& state, const char* config) {
  const auto codec = *MakeCodec(config, Direction::kPush);
  std::vector<float> values = Gradient();
  std::string bytes(codec->EncodedBytes(kValues), '\0');
  codec->Encode(values, bytes.data());
  for (auto unused : state) {
    if (!codec->Decode(bytes, values).ok()) state.SkipWithError("rejected");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) << 20);
}

void Copy(benchmark::State& state) {
  const std::vector<float> values = Gradient();
  std::vector<float> out(kValues);
  for (auto unused : state) {
    std::memcpy(out.data(), values.data(), kValues * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) << 20);
}

BENCHMARK(Copy)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Encode, bf16, "bf16")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Decode, bf16, "bf16")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Encode, int8, "int8")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Decode, int8, "int8")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Encode, e3m0, "e3m0")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Decode, e3m0, "e3m0")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Encode, top_k, "top_k")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Decode, top_k, "top_k")->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shoal
