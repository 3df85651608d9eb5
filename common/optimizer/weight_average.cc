#include "common/optimizer/weight_average.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/optimizer/vectorize.h"

namespace shoal {
namespace {

SHOAL_VECTORIZED
void Average(const float* values, float* average, size_t size, float momentum,
             float one_minus_momentum) {
  SHOAL_INDEPENDENT
  for (size_t i = 0; i < size; ++i)
    average[i] = momentum * average[i] + one_minus_momentum * values[i];
}

class Averaging : public Update {
 public:
  Averaging(double momentum, bool overwrite, std::unique_ptr<const Update> update)
      : momentum_(static_cast<float>(momentum)),
        one_minus_momentum_(static_cast<float>(1 - momentum)),
        overwrite_(overwrite),
        update_(std::move(update)) {}

  void Apply(std::span<const float> gradient, std::span<const float> values, std::span<float> out,
             std::span<float* const> slots) const override {
    update_->Apply(gradient, values, out, slots.first(slots.size() - 1));
    float* const average = slots.back();
    Average(out.data(), average, out.size(), momentum_, one_minus_momentum_);
    if (overwrite_) std::copy_n(average, out.size(), out.data());
  }

 private:
  const float momentum_;
  const float one_minus_momentum_;
  const bool overwrite_;
  const std::unique_ptr<const Update> update_;
};

}  // namespace

WeightAverage ReadWeightAverage(KerasOptions& options) {
  const WeightAverage defaults;
  WeightAverage average;
  average.used = options.Flag("use_ema", defaults.used);
  average.momentum = options.Number("ema_momentum", defaults.momentum, {.min = 0, .max = 1});
  average.overwrite_frequency =
      options.IntegerOrNull("ema_overwrite_frequency", {1, int64_t{1} << 40}).value_or(0);
  if (average.used) return average;
  // The options have no effect then, and must not change the job's identity.
  options.Resolve("ema_momentum", defaults.momentum, "");
  options.Resolve("ema_overwrite_frequency", nullptr, "");
  return defaults;
}

std::unique_ptr<const Update> AveragingUpdate(const WeightAverage& average, uint64_t iteration,
                                              std::unique_ptr<const Update> update) {
  const bool overwrite =
      average.overwrite_frequency > 0 && iteration % average.overwrite_frequency == 0;
  return std::make_unique<Averaging>(iteration == 1 ? 0 : average.momentum, overwrite,
                                     std::move(update));
}

}  // namespace shoal
