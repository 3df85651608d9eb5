#include "common/callback/metric_monitor.h"

#include <cmath>

namespace shoal {

bool MetricMonitor::IsBetter(double value, double reference) const {
  return options_.maximize ? value - options_.min_delta > reference
                           : value + options_.min_delta < reference;
}

// EarlyStopping.on_epoch_end of Keras 3. The training never ends after the best epoch so far, even
// if it does not beat the baseline, nor after the very first epoch.
void MetricMonitor::Take(uint64_t epoch, double value) {
  if (epoch < options_.start_from_epoch) return;
  ++waited_;
  const std::optional<double> reference =
      best_.has_value() ? std::optional(best_->value) : options_.threshold;
  if (std::isfinite(value) && (!reference.has_value() || IsBetter(value, *reference))) {
    best_ = {epoch, value};
    if (!options_.baseline.has_value() || IsBetter(value, *options_.baseline)) waited_ = 0;
    return;
  }
  if (options_.patience.has_value() && waited_ >= *options_.patience && epoch > 0 &&
      !ended_after_.has_value()) {
    ended_after_ = epoch;
  }
}

}  // namespace shoal
