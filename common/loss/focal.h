#pragma once

#include "common/loss/keras_loss.h"

namespace shoal {

// The common part of the two focal losses: examples that are already right count less.
struct Focal {
  explicit Focal(KerasOptions& options, double largest_alpha)
      : alpha(options.Number("alpha", 0.25, {.min = 0, .max = largest_alpha})),
        gamma(options.Number("gamma", 2, {.min = 0, .max = 1000})),
        from_logits(options.Flag("from_logits", false)),
        label_smoothing(ReadLabelSmoothing(options)) {
    RejectOtherAxis(options);
  }

  // (1 - p)^gamma crossentropy, where p is the probability of the right answer.
  Expression Weigh(Expression p, Expression crossentropy) const {
    return Power(1 - p, gamma) * crossentropy;
  }

  const double alpha;
  const double gamma;
  const bool from_logits;
  const double label_smoothing;
};

}  // namespace shoal
