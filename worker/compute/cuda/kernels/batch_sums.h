#pragma once

#include <cstdint>

#include "common/training_metric/row_score.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/row_groups.h"

// The sums of a batch: metric scores of its rows, and sums of scores, of losses and of weights in
// double. Bound by bandwidth if rows are long or many, else by the start of a kernel.

namespace shoal::cuda {

// The first of the largest values, in the order of std::max_element: not-a-number is never larger.
struct Largest {
  int64_t at;  // below 0: none yet
  float value;

  SHOAL_HOST_DEVICE static Largest OfNone() { return {-1, 0}; }

  SHOAL_HOST_DEVICE void Take(const Largest& other) {
    if (other.at < 0 || other.value != other.value) return;
    if (at < 0 || other.value > value || (other.value == value && other.at < at)) *this = other;
  }
};

// Scores of rows of `columns` predictions each, with `group` threads per row.
template <int group>
struct RowScoreKernel {
  using Groups = RowGroups<group>;
  static constexpr int kThreads = Groups::kThreads;
  static constexpr int kPhases = 3;
  struct Shared {
    Largest prediction[kThreads];
    Largest target[kThreads];
    double sum[kThreads];
  };
  struct ThreadState {};
  using Kind = RowScore::Kind;

  RowScore score;
  bool of_class;  // RowScore::of_class
  const float* prediction;
  const float* target;   // one element per prediction, or with of_class one per row
  const float* weights;  // of the examples; null: 1
  int64_t rows;
  int64_t columns;
  int64_t rows_of_example;
  double* scores;  // [rows], times the weights

  int64_t blocks() const { return Groups::Blocks(rows); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    const int thread = place.thread, lane = Groups::Lane(thread);
    const int64_t row = Groups::Row(place.block, thread);
    if (row >= rows) return;
    const float* const p = prediction + row * columns;
    const float* const t = of_class ? target + row : target + row * columns;
    if constexpr (phase == 0) {
      shared.prediction[thread] = LargestOf(p, lane);
      if (!of_class) shared.target[thread] = LargestOf(t, lane);
    } else if constexpr (phase == 1) {
      double sum = 0;
      if (score.kind == Kind::kClassInTopK || score.kind == Kind::kLargestInTopK) {
        const int64_t of = ClassOf(t, shared, thread);
        for (int64_t i = lane; of >= 0 && of < columns && i < columns; i += group)
          sum += !(p[i] <= p[of]);
      } else if (score.kind == Kind::kSideOfThreshold) {
        for (int64_t i = lane; i < columns; i += group)
          sum += (p[i] > score.threshold ? 1.0f : 0.0f) == t[i];
      } else if (score.kind == Kind::kMeanSquaredError) {
        for (int64_t i = lane; i < columns; i += group) {
          const double error = double{p[i]} - t[i];
          sum += error * error;
        }
      } else if (score.kind == Kind::kMeanAbsoluteError) {
        for (int64_t i = lane; i < columns; i += group) {
          const double error = double{p[i]} - t[i];
          sum += error < 0 ? -error : error;
        }
      }
      shared.sum[thread] = sum;
    } else if (lane == 0) {
      const double weight = weights == nullptr ? 1.0 : double{weights[row / rows_of_example]};
      scores[row] = ScoreOf(p, t, shared, thread) * weight;
    }
  }

 private:
  // The largest in this lane's share of a row.
  SHOAL_HOST_DEVICE Largest LargestOf(const float* values, int lane) const {
    Largest largest = Largest::OfNone();
    for (int64_t i = lane; i < columns; i += group) largest.Take({i, values[i]});
    return largest;
  }
  // The first largest in all shares of the row that begins at `values`. `shares` is by thread.
  SHOAL_HOST_DEVICE static int64_t FirstLargest(const float* values, const Largest* shares,
                                                int thread) {
    if (values[0] != values[0]) return 0;
    Largest largest = Largest::OfNone();
    for (int i = 0; i < group; ++i) largest.Take(shares[thread - Groups::Lane(thread) + i]);
    return largest.at;
  }
  // No class if below 0 or not below `columns`.
  SHOAL_HOST_DEVICE int64_t ClassOf(const float* t, const Shared& shared, int thread) const {
    return of_class ? static_cast<int64_t>(*t) : FirstLargest(t, shared.target, thread);
  }
  SHOAL_HOST_DEVICE double ScoreOf(const float* p, const float* t, const Shared& shared,
                                   int thread) const {
    double sum = 0;
    for (int i = 0; i < group; ++i) sum += shared.sum[thread + i];
    switch (score.kind) {
      case Kind::kClassIsLargest:
        return static_cast<float>(FirstLargest(p, shared.prediction, thread)) == *t;
      case Kind::kLargestIsLargest:
        return FirstLargest(p, shared.prediction, thread) == FirstLargest(t, shared.target, thread);
      case Kind::kClassInTopK:
      case Kind::kLargestInTopK: {
        const int64_t of = ClassOf(t, shared, thread);
        return of >= 0 && of < columns && sum < static_cast<double>(score.k);
      }
      case Kind::kSideOfThreshold:
      case Kind::kMeanSquaredError:
      case Kind::kMeanAbsoluteError:
        return sum / static_cast<double>(columns);
    }
    return 0;
  }
};

// Each of `grid` blocks adds up a share of `count` numbers, always in the same order.
template <typename Number>
struct SumKernel {
  static constexpr int kThreads = 256;
  static constexpr int kPhases = 3;
  static constexpr int kStride = 16;  // threads that add up in the second phase
  struct Shared {
    double shares[kThreads];
  };
  struct ThreadState {};

  const Number* numbers;
  int64_t count;
  int64_t grid;
  double divisor;  // divides each sum
  double* sums;    // [grid]

  int64_t blocks() const { return grid; }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    const int thread = place.thread;
    if constexpr (phase == 0) {
      double sum = 0;
      for (int64_t i = place.block * kThreads + thread; i < count; i += grid * kThreads)
        sum += numbers[i];
      shared.shares[thread] = sum;
    } else if constexpr (phase == 1) {
      if (thread >= kStride) return;
      double sum = 0;
      for (int i = thread; i < kThreads; i += kStride) sum += shared.shares[i];
      shared.shares[thread] = sum;
    } else if (thread == 0) {
      double sum = 0;
      for (int i = 0; i < kStride; ++i) sum += shared.shares[i];
      sums[place.block] = sum / divisor;
    }
  }
};

}  // namespace shoal::cuda
