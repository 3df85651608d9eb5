#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace shoal {

// Follows one figure over the epochs of a training: finds the best epoch, and whether there was no
// better one for `patience` epochs. The result is a function of the figures alone, so that reading
// them again gives the same result. Works like Keras's EarlyStopping and ModelCheckpoint
// (keras.src.callbacks), with one difference: a figure that is not finite is never the best and
// never an improvement. Plain state; not thread-safe.
class MetricMonitor {
 public:
  struct Options {
    std::string figure = "val_loss";  // its name in history.csv
    bool maximize = false;            // otherwise smaller is better
    double min_delta = 0;             // a smaller improvement than this does not count
    // Only a figure better than this ends the waiting.
    std::optional<double> baseline;
    // Only a figure better than this can be the best.
    std::optional<double> threshold;
    uint64_t start_from_epoch = 0;     // ignores epochs before it
    std::optional<uint64_t> patience;  // max epochs without improvement; none: never ends
  };
  explicit MetricMonitor(Options options) : options_(std::move(options)) {}

  // Takes the figure of an epoch. Call it once for each epoch, in order.
  void Take(uint64_t epoch, double value);

  struct Best {
    uint64_t epoch = 0;
    double value = 0;
  };
  // The first among equal ones; nothing before the first finite figure.
  const std::optional<Best>& best() const { return best_; }
  // The number of epochs since the best one, or since a figure last beat the baseline.
  uint64_t waited() const { return waited_; }
  // The epoch after which the training ends, once patience has run out. Figures taken later may
  // still become the best, and do not change this.
  const std::optional<uint64_t>& ended_after() const { return ended_after_; }
  const Options& options() const { return options_; }

 private:
  bool IsBetter(double value, double reference) const;

  const Options options_;
  std::optional<Best> best_;
  uint64_t waited_ = 0;
  std::optional<uint64_t> ended_after_;
};

}  // namespace shoal
