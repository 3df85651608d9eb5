#include "worker/step/inner_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/optimizer/update.h"

namespace shoal {

InnerOptimizer::InnerOptimizer(Options options)
    : options_(std::move(options)),
      layout_(options_.variables),
      values_(layout_.size),
      exchanged_(options_.by_chunks ? layout_.size : 0),
      slots_(options_.optimizer->slot_names().size(), std::vector<float>(layout_.size)),
      samples_(options_.variables.size()) {
  for (size_t v = 0; v < options_.variables.size(); ++v) {
    if (options_.variables[v].rule == UpdateRule::kMovingAverage)
      samples_[v].sum.resize(layout_.variables[v].size);
  }
  Forget();
}

uint64_t InnerOptimizer::BytesOf(const Optimizer& optimizer, const ModelLayout& layout,
                                 bool by_chunks) {
  return layout.size * (1 + (by_chunks ? 1 : 0) + optimizer.slot_names().size()) * sizeof(float);
}

void InnerOptimizer::Forget() {
  begun_ = false;
  updates_ = 0;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    std::fill(slots_[slot].begin(), slots_[slot].end(),
              options_.optimizer->initial_slot_value(static_cast<int>(slot)));
  }
}

void InnerOptimizer::Begin(std::span<const float> parameters) {
  begun_ = true;
  std::copy(parameters.begin(), parameters.end(), values_.begin());
  for (Samples& samples : samples_) samples.Clear();
}

void InnerOptimizer::Samples::Clear() {
  std::fill(sum.begin(), sum.end(), 0.0f);
  batches = 0;
}

std::vector<std::span<float>> InnerOptimizer::OptimizedPartsOf(std::span<float> buffer) const {
  std::vector<std::span<float>> parts;
  for (size_t v = 0; v < options_.variables.size(); ++v) {
    if (options_.variables[v].rule == UpdateRule::kOptimizer) parts.push_back(PartOf(buffer, v));
  }
  return parts;
}

void InnerOptimizer::Update(uint64_t batch, std::span<float> pushed) {
  const Optimizer& optimizer = *options_.optimizer;
  optimizer.clipping().Clip(OptimizedPartsOf(pushed));
  ++updates_;
  std::unique_ptr<const class Update> updates[2];  // index 1: with weight decay
  std::vector<float*> slots(slots_.size());
  for (size_t v = 0; v < options_.variables.size(); ++v) {
    const Variable& variable = options_.variables[v];
    const std::span<float> part = PartOf(pushed, v);
    if (variable.rule == UpdateRule::kMovingAverage) {
      Samples& samples = samples_[v];
      const auto momentum = static_cast<float>(variable.momentum);
      for (size_t i = 0; i < part.size(); ++i) samples.sum[i] = momentum * samples.sum[i] + part[i];
      ++samples.batches;
    }
    if (variable.rule != UpdateRule::kOptimizer) continue;
    const bool decays = !optimizer.decay_exclusions().Excludes(variable.name);
    std::unique_ptr<const class Update>& update = updates[decays];
    if (update == nullptr)
      update = optimizer.Prepare(updates_, {.decays = decays, .scheduled_as = batch + 1});
    for (size_t i = 0; i < slots.size(); ++i) slots[i] = PartOf(slots_[i], v).data();
    const std::span<float> values = PartOf(values_, v);
    update->Apply(part, values, values, slots);
  }
}

void InnerOptimizer::Finish(std::span<const float> parameters, std::span<float> pushed) {
  for (size_t v = 0; v < options_.variables.size(); ++v) {
    const Variable& variable = options_.variables[v];
    const std::span<float> part = PartOf(pushed, v);
    const std::span<const float> before =
        parameters.subspan(layout_.variables[v].offset, layout_.variables[v].size);
    if (variable.rule == UpdateRule::kOptimizer) {
      const std::span<const float> after = PartOf(values_, v);
      for (size_t i = 0; i < part.size(); ++i) part[i] = before[i] - after[i];
    } else if (variable.rule == UpdateRule::kMovingAverage) {
      SampleOf(samples_[v], variable.momentum, before, part);
    }
  }
  options_.difference_clipping.Clip(OptimizedPartsOf(pushed));
}

void InnerOptimizer::Exchange(const Chunk& chunk, std::span<const float> parameters,
                              std::span<float> pushed) {
  for (const ChunkPiece& piece : chunk.pieces) {
    const ModelLayout::Extent& extent = layout_.variables[piece.variable];
    if (chunk.rule == UpdateRule::kMovingAverage) {
      if (piece.variable_offset > 0) continue;
      Samples& samples = samples_[piece.variable];
      SampleOf(samples, options_.variables[piece.variable].momentum,
               parameters.subspan(extent.offset, extent.size), PartOf(pushed, piece.variable));
      samples.Clear();
      continue;
    }
    const int64_t begin = extent.offset + piece.variable_offset;
    for (int64_t i = begin; i < begin + piece.size; ++i) {
      exchanged_[i] = values_[i];
      pushed[i] = parameters[i] - values_[i];
    }
  }
}

void InnerOptimizer::Merge(const Chunk& chunk, std::span<const float> parameters) {
  const bool moves = chunk.rule == UpdateRule::kOptimizer;
  for (const ChunkPiece& piece : chunk.pieces) {
    const int64_t begin = layout_.variables[piece.variable].offset + piece.variable_offset;
    for (int64_t i = begin; i < begin + piece.size; ++i)
      values_[i] = parameters[i] + (moves ? values_[i] - exchanged_[i] : 0);
  }
}

// The h batches give m^h value + (1 - m) sum, and a ps gives M value + (1 - M) sample, with M =
// m^H. For h = H the sample is the mean of the batches' samples, with their weights in the sum.
void InnerOptimizer::SampleOf(const Samples& samples, double momentum,
                              std::span<const float> values, std::span<float> sample) const {
  const double whole = std::pow(momentum, static_cast<double>(options_.batches_per_step));
  const double kept = std::pow(momentum, static_cast<double>(samples.batches));
  // With a momentum of 1 the ps ignores the sample.
  const double scale = whole == 1 ? 0 : (1 - momentum) / (1 - whole);
  const double of_value = whole == 1 ? 0 : (kept - whole) / (1 - whole);
  for (size_t i = 0; i < sample.size(); ++i)
    sample[i] = static_cast<float>(of_value * values[i] + scale * samples.sum[i]);
}

}  // namespace shoal
