#include "worker/inner_optimizer.h"

#include <algorithm>
#include <utility>

#include "common/optimizer/update.h"

namespace shoal {

InnerOptimizer::InnerOptimizer(Options options)
    : options_(std::move(options)),
      layout_(options_.variables),
      values_(layout_.size),
      slots_(options_.optimizer->slot_names().size(), std::vector<float>(layout_.size)),
      samples_(options_.variables.size()) {
  for (size_t v = 0; v < options_.variables.size(); ++v) {
    if (options_.variables[v].rule == UpdateRule::kMovingAverage)
      samples_[v].sum.resize(layout_.variables[v].size);
  }
  Forget();
}

uint64_t InnerOptimizer::BytesOf(const Optimizer& optimizer, const ModelLayout& layout) {
  return layout.size * (1 + optimizer.slot_names().size()) * sizeof(float);
}

void InnerOptimizer::Forget() {
  updates_ = 0;
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    std::fill(slots_[slot].begin(), slots_[slot].end(),
              options_.optimizer->initial_slot_value(static_cast<int>(slot)));
  }
}

void InnerOptimizer::Begin(std::span<const float> parameters) {
  std::copy(parameters.begin(), parameters.end(), values_.begin());
  for (Samples& samples : samples_) {
    std::fill(samples.sum.begin(), samples.sum.end(), 0.0f);
    samples.weight = 0;
  }
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
  std::unique_ptr<const class Update> updates[2];  // with weight decay: 1
  std::vector<float*> slots(slots_.size());
  for (size_t v = 0; v < options_.variables.size(); ++v) {
    const Variable& variable = options_.variables[v];
    const std::span<float> part = PartOf(pushed, v);
    if (variable.rule == UpdateRule::kMovingAverage) {
      Samples& samples = samples_[v];
      const auto momentum = static_cast<float>(variable.momentum);
      for (size_t i = 0; i < part.size(); ++i) samples.sum[i] = momentum * samples.sum[i] + part[i];
      samples.weight = variable.momentum * samples.weight + 1;
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
    const std::span<float> part = PartOf(pushed, v);
    if (options_.variables[v].rule == UpdateRule::kOptimizer) {
      const std::span<const float> before =
          parameters.subspan(layout_.variables[v].offset, layout_.variables[v].size);
      const std::span<const float> after = PartOf(values_, v);
      for (size_t i = 0; i < part.size(); ++i) part[i] = before[i] - after[i];
    } else if (options_.variables[v].rule == UpdateRule::kMovingAverage) {
      const Samples& samples = samples_[v];
      for (size_t i = 0; i < part.size(); ++i)
        part[i] = static_cast<float>(samples.sum[i] / samples.weight);
    }
  }
  options_.difference_clipping.Clip(OptimizedPartsOf(pushed));
}

}  // namespace shoal
