#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "common/model/ops/loss.h"

namespace shoal {

// Extent of the last axis of predictions; predictions of shape [B] are rows of length one.
inline int64_t LossRowLength(const Shape& prediction) {
  return prediction.size() > 1 ? prediction.back() : 1;
}

// Keras's losses (keras.losses, keras.ops) of one row: the predictions along the last axis and
// their target. Both backends use these loops: rows are short and few compared to the layers before
// them.
template <typename Scalar>
class LossRow {
 public:
  LossRow(const LossAttributes& attributes, int64_t classes)
      : attributes_(attributes), classes_(classes), probability_(classes), target_(classes) {}

  // Number of target elements that belong to one row.
  int64_t target_stride() const { return sparse() ? 1 : classes_; }

  double Loss(const Scalar* prediction, const Scalar* target) {
    double sum = 0;
    if (attributes_.kind == LossAttributes::Kind::kMeanSquaredError) {
      for (int64_t i = 0; i < classes_; ++i) {
        const double difference = double{prediction[i]} - target[i];
        sum += difference * difference;
      }
      return sum / classes_;
    }
    LoadTarget(target);
    if (attributes_.from_logits) {
      const double log_sum = LogSumExp(prediction);
      for (int64_t i = 0; i < classes_; ++i) {
        // 0 * infinity is not a number. A logit that is none must still show.
        if (target_[i] == 0 && prediction[i] == kMinusInfinity) continue;
        sum += target_[i] * (log_sum - prediction[i]);
      }
    } else {
      Normalise(prediction);
      for (int64_t i = 0; i < classes_; ++i) {
        sum -= target_[i] * std::log(std::clamp(probability_[i], kEpsilon, 1 - kEpsilon));
      }
    }
    return sum;
  }

  // gradient = scale * d Loss / d prediction
  void Gradient(const Scalar* prediction, const Scalar* target, double scale, Scalar* gradient) {
    if (attributes_.kind == LossAttributes::Kind::kMeanSquaredError) {
      for (int64_t i = 0; i < classes_; ++i) {
        gradient[i] =
            static_cast<Scalar>(scale * 2 / classes_ * (double{prediction[i]} - target[i]));
      }
      return;
    }
    LoadTarget(target);
    if (attributes_.from_logits) {
      GradientOfLogits(prediction, scale, gradient);
    } else {
      GradientOfProbabilities(prediction, scale, gradient);
    }
  }

 private:
  static constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
  static constexpr double kEpsilon = 1e-7;  // keras.backend.epsilon()

  bool sparse() const {
    return attributes_.kind == LossAttributes::Kind::kSparseCategoricalCrossentropy;
  }

  // Loads the target distribution over classes. A label that is no class gives a loss of zero here;
  // ModelRunner rejects such a label first.
  void LoadTarget(const Scalar* target) {
    if (sparse()) {
      std::fill(target_.begin(), target_.end(), 0.0);
      if (*target >= 0 && *target < classes_) target_[static_cast<int64_t>(*target)] = 1;
      return;
    }
    const double smoothing = attributes_.label_smoothing;
    for (int64_t i = 0; i < classes_; ++i) {
      target_[i] = target[i] * (1 - smoothing) + smoothing / classes_;
    }
  }

  double LogSumExp(const Scalar* logits) const {
    const double largest = *std::max_element(logits, logits + classes_);
    double sum = 0;
    for (int64_t i = 0; i < classes_; ++i) sum += std::exp(logits[i] - largest);
    return largest + std::log(sum);
  }

  void GradientOfLogits(const Scalar* logits, double scale, Scalar* gradient) const {
    const double log_sum = LogSumExp(logits);
    double target_sum = 0;
    for (const double t : target_) target_sum += t;
    for (int64_t i = 0; i < classes_; ++i) {
      gradient[i] =
          static_cast<Scalar>(scale * (target_sum * std::exp(logits[i] - log_sum) - target_[i]));
    }
  }

  // Fills probability_ and returns the sum that it divided by.
  double Normalise(const Scalar* prediction) {
    double sum = 0;
    for (int64_t i = 0; i < classes_; ++i) sum += prediction[i];
    for (int64_t i = 0; i < classes_; ++i) probability_[i] = prediction[i] / sum;
    return sum;
  }

  // With q = p / S: dL/dq_i = -t_i / q_i where q_i is not clipped; dL/dp_j = (dL/dq_j - sum_i
  // dL/dq_i q_i) / S.
  void GradientOfProbabilities(const Scalar* prediction, double scale, Scalar* gradient) {
    const double sum = Normalise(prediction);
    double dot = 0;
    for (int64_t i = 0; i < classes_; ++i) {
      const double q = probability_[i];
      const bool clipped = q < kEpsilon || q > 1 - kEpsilon;
      probability_[i] = clipped ? 0 : -target_[i] / q;
      if (!clipped) dot -= target_[i];
    }
    for (int64_t i = 0; i < classes_; ++i) {
      gradient[i] = static_cast<Scalar>(scale * (probability_[i] - dot) / sum);
    }
  }

  const LossAttributes& attributes_;
  const int64_t classes_;
  std::vector<double> probability_;
  std::vector<double> target_;
};

}  // namespace shoal
