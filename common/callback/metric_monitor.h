#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace shoal {

// Follows one figure of the epochs of a training: which epoch is the best, and whether enough have
// passed since without a better one. What it says is a function of the figures alone, so that it
// is the same again whenever they are read again. As Keras's EarlyStopping and ModelCheckpoint have
// it (keras.src.callbacks), but that a figure which is not a finite number is never the best, nor
// better than one. Plain state; not thread-safe.
class MetricMonitor {
 public:
  struct Options {
    std::string figure = "val_loss";  // as history.csv has it
    bool maximize = false;            // else the smaller is the better
    double min_delta = 0;             // what is better by no more than this is not better
    // Only what is better than this ends the waiting.
    std::optional<double> baseline;
    // Only what is better than this may be the best.
    std::optional<double> threshold;
    uint64_t start_from_epoch = 0;     // epochs before it are not looked at
    std::optional<uint64_t> patience;  // epochs without a better one; never ends without
  };
  explicit MetricMonitor(Options options) : options_(std::move(options)) {}

  // The figure of an epoch; epochs come in their order, each once.
  void Take(uint64_t epoch, double value);

  struct Best {
    uint64_t epoch = 0;
    double value = 0;
  };
  // The first among equals; none before the first finite figure.
  const std::optional<Best>& best() const { return best_; }
  // Epochs taken since the best, or since the baseline was last beaten.
  uint64_t waited() const { return waited_; }
  // The epoch after which the training ends, once patience has run out; what is taken after it may
  // still be the best, and changes nothing here.
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
