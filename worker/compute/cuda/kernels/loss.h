#pragma once

#include <cmath>

#include "common/model/ops/loss.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/row_groups.h"
#include "worker/compute/op_math/bfloat16.h"

namespace shoal::cuda {

// LossOp and LossBackwardOp of a cross-entropy, both in one pass over the predictions: the loss of
// each row, and `scale` times its gradient. If an example has several rows (T rows for [B, T, C]),
// its loss is their mean: ExampleLossKernel. With logits, softmax and cross-entropy are one: loss =
// sum_i t_i (log sum_j exp(x_j) - x_i), gradient = softmax(x) sum_i t_i - t.
//
// Bound by bandwidth: a row comes from memory once and then from the cache, because it has only a
// few kilobytes.
template <typename Element, int group>
struct CrossEntropyKernel {
  using Groups = RowGroups<group>;
  static constexpr int kThreads = Groups::kThreads;
  static constexpr int kPhases = 3;
  static constexpr float kEpsilon = 1e-7f;  // keras.backend.epsilon()
  struct Shared {
    float first[kThreads];  // the largest logit, or the sum of the probabilities
    float sum[kThreads];
    float target_sum[kThreads];
    float loss[kThreads];
  };
  struct ThreadState {
    float first;
  };

  LossAttributes attributes;  // of a cross-entropy
  const Element* prediction;
  const float* target;  // one class number per row, or one value per element
  float* loss;          // by row; may be null
  Element* gradient;    // may be null, or equal to the predictions
  int64_t rows;
  int64_t columns;
  float scale;

  int64_t blocks() const { return Groups::Blocks(rows); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState& own) const {
    const int64_t row = Groups::Row(place.block, place.thread);
    if (row >= rows) return;
    if (attributes.from_logits) {
      RunLogits<phase>(row, place.thread, shared, own);
    } else {
      RunProbabilities<phase>(row, place.thread, shared, own);
    }
  }

 private:
  SHOAL_HOST_DEVICE float TargetOf(int64_t row, int64_t column) const {
    if (attributes.kind == LossAttributes::Kind::kSparseCategoricalCrossentropy) {
      return target[row] == static_cast<float>(column) ? 1 : 0;
    }
    const float smoothing = static_cast<float>(attributes.label_smoothing);
    return target[row * columns + column] * (1 - smoothing) + smoothing / columns;
  }

  template <int phase>
  SHOAL_HOST_DEVICE void RunLogits(int64_t row, int thread, Shared& shared,
                                   ThreadState& own) const {
    const Element* x = prediction + row * columns;
    const int lane = Groups::Lane(thread);
    if constexpr (phase == 0) {
      float largest = -INFINITY;
      for (int64_t i = lane; i < columns; i += group) {
        const float value = ToFloat(x[i]);
        if (value > largest || value != value) largest = value;
      }
      shared.first[thread] = largest;
    } else if constexpr (phase == 1) {
      own.first = Groups::Largest(shared.first, thread);
      float sum = 0, target_sum = 0, product = 0;
      for (int64_t i = lane; i < columns; i += group) {
        const float value = ToFloat(x[i]) - own.first, t = TargetOf(row, i);
        sum += std::exp(value);
        target_sum += t;
        if (t != 0) product += t * value;  // avoids 0 * infinity for a logit of minus infinity
      }
      shared.sum[thread] = sum;
      shared.target_sum[thread] = target_sum;
      shared.loss[thread] = -product;
    } else {
      const float sum = Groups::Sum(shared.sum, thread);
      const float target_sum = Groups::Sum(shared.target_sum, thread);
      if (loss != nullptr && lane == 0) {
        loss[row] = target_sum * std::log(sum) + Groups::Sum(shared.loss, thread);
      }
      if (gradient == nullptr) return;
      for (int64_t i = lane; i < columns; i += group) {
        const float probability = std::exp(ToFloat(x[i]) - own.first) / sum;
        gradient[row * columns + i] =
            FromFloat<Element>(scale * (target_sum * probability - TargetOf(row, i)));
      }
    }
  }

  // With q = p / S: dL/dq_i = -t_i / q_i where q_i is not clipped, and dL/dp_j = (dL/dq_j - sum_i
  // dL/dq_i q_i) / S.
  template <int phase>
  SHOAL_HOST_DEVICE void RunProbabilities(int64_t row, int thread, Shared& shared,
                                          ThreadState& own) const {
    const Element* p = prediction + row * columns;
    const int lane = Groups::Lane(thread);
    if constexpr (phase == 0) {
      float sum = 0;
      for (int64_t i = lane; i < columns; i += group) sum += ToFloat(p[i]);
      shared.first[thread] = sum;
    } else if constexpr (phase == 1) {
      own.first = Groups::Sum(shared.first, thread);
      float dot = 0, row_loss = 0;
      for (int64_t i = lane; i < columns; i += group) {
        const float t = TargetOf(row, i);
        const float q = ToFloat(p[i]) / own.first;
        row_loss -= t * std::log(q < kEpsilon ? kEpsilon : q > 1 - kEpsilon ? 1 - kEpsilon : q);
        if (!IsClipped(q)) dot -= t;
      }
      shared.sum[thread] = dot;
      shared.loss[thread] = row_loss;
    } else {
      if (loss != nullptr && lane == 0) loss[row] = Groups::Sum(shared.loss, thread);
      if (gradient == nullptr) return;
      const float dot = Groups::Sum(shared.sum, thread);
      for (int64_t i = lane; i < columns; i += group) {
        const float q = ToFloat(p[i]) / own.first;
        const float by_q = IsClipped(q) ? 0 : -TargetOf(row, i) / q;
        gradient[row * columns + i] = FromFloat<Element>(scale * (by_q - dot) / own.first);
      }
    }
  }

  SHOAL_HOST_DEVICE static bool IsClipped(float q) { return q < kEpsilon || q > 1 - kEpsilon; }
};

// The loss of each example: the mean over its rows.
struct ExampleLossKernel {
  const float* row_loss;
  int64_t examples;
  int64_t inner;  // rows per example
  float* loss;    // [examples]

  int64_t items() const { return examples; }
  SHOAL_HOST_DEVICE void operator()(int32_t example) const {
    double sum = 0;
    for (int64_t i = 0; i < inner; ++i) sum += row_loss[example * inner + i];
    loss[example] = static_cast<float>(sum / inner);
  }
};

// LossOp of the mean squared error, one loss per row.
struct SquaredErrorKernel {
  const float* prediction;
  const float* target;
  float* loss;
  int64_t rows;
  int64_t columns;

  int64_t items() const { return rows; }
  SHOAL_HOST_DEVICE void operator()(int32_t row) const {
    double sum = 0;
    for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
      const double difference = double{prediction[i]} - target[i];
      sum += difference * difference;
    }
    loss[row] = static_cast<float>(sum / columns);
  }
};

struct SquaredErrorBackwardKernel {
  const float* prediction;
  const float* target;
  float* gradient;
  double scale;  // factor of a difference
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    gradient[item] = static_cast<float>(scale * (double{prediction[item]} - target[item]));
  }
};

}  // namespace shoal::cuda
