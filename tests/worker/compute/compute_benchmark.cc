#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "common/model/graph.h"
#include "common/model/ops/loss.h"
#include "tests/common/loss/loss_of.h"
#include "tests/worker/compute/model_building.h"
#include "worker/compute/model_runner.h"

// Training steps of the two example models, one process: images per second. Arguments: threads.

namespace shoal {
namespace {

constexpr int64_t kBatchSize = 64;

void TrainModel(benchmark::State& state, Graph model) {
  ModelRunner::Options options;
  options.model = std::move(model);
  options.loss = LossOf("SparseCategoricalCrossentropy", R"({"from_logits": true})");
  options.metrics = *MakeMetrics({"sparse_categorical_accuracy"});
  options.threads = static_cast<int>(state.range(0));
  auto runner = ModelRunner::Create(std::move(options));
  if (!runner.ok()) return state.SkipWithError(runner.status().ToString().c_str());

  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-0.05f, 0.05f);
  std::vector<float> parameters((*runner)->layout().size), gradients(parameters.size());
  std::vector<float> images(kBatchSize * 28 * 28), labels(kBatchSize);
  for (float& value : parameters) value = uniform(random);
  for (float& value : images) value = uniform(random) * 10 + 0.5f;
  for (float& label : labels) label = static_cast<float>(random() % 10);
  const Batch batch = {.examples = kBatchSize, .inputs = {images}, .target = labels};

  uint64_t step = 0;
  for (auto _ : state) {
    auto result = (*runner)->Train(batch, step++, parameters, gradients, nullptr);
    if (!result.ok()) return state.SkipWithError(result.status().ToString().c_str());
  }
  state.counters["images/s"] =
      benchmark::Counter(static_cast<double>(kBatchSize * step), benchmark::Counter::kIsRate);
}

void BM_FashionCnn(benchmark::State& state) { TrainModel(state, FashionCnn()); }
BENCHMARK(BM_FashionCnn)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

void BM_Mlp2048(benchmark::State& state) { TrainModel(state, FashionMlp(2048)); }
BENCHMARK(BM_Mlp2048)->Arg(1)->Arg(2)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shoal

BENCHMARK_MAIN();
