// Keras's EarlyStopping: ends the training when a figure has not improved for some epochs.
#include "common/callback/callback.h"
#include "common/json/keras_options.h"

namespace shoal {
namespace {

constexpr NumberRange kAnyNumber = {.min = -1e30, .max = 1e30};

}  // namespace

Callback MakeEarlyStoppingCallback(KerasOptions& options) {
  Callback callback;
  MetricMonitor::Options& monitor = callback.monitor;
  ReadMonitored(options, &monitor);
  monitor.min_delta = options.Number("min_delta", 0, {.min = 0, .max = 1e30});
  monitor.patience = options.Integer("patience", 0, {0, 1'000'000});
  monitor.baseline = options.NumberOrNull("baseline", std::nullopt, kAnyNumber);
  callback.restores_best = options.Flag("restore_best_weights", false);
  monitor.start_from_epoch = options.Integer("start_from_epoch", 0, {0, 1'000'000});
  return callback;
}

}  // namespace shoal
