#pragma once

#include <cmath>

#include "worker/compute/cuda/kernels/column_moments.h"
#include "worker/compute/cuda/kernels/column_sums.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"

// BatchNormalizationOp fused with the ops that models put after it: the sum with a residual branch,
// and ReLU or ReLU6. x is [rows, columns]; statistics and parameters are float, one per column.
//
// Training: ColumnMomentsKernel, BatchNormalizationStatisticsKernel, BatchNormalizationKernel.
// Inference, or frozen: NormalizationFactorKernel, BatchNormalizationKernel. Backward:
// ColumnSumsKernel<BatchNormalizationBackwardTerms>, BatchNormalizationCoefficientsKernel,
// BatchNormalizationBackwardKernel.
//
// Bound by bandwidth. Forward reads x twice and writes y; backward reads x and dy twice and writes
// dx. The second read is necessary because the statistics must be known before writing the first
// element.
//
// Without a residual, backward recomputes the activation's mask from x; reading y would add a
// third. With a residual, the sums read y and store the clamped gradient, which the other branch
// also needs. It is dy from then on. If dy is a sum of two gradients, the sums read both and store
// the result in the same way.

namespace shoal::cuda {

// No clamp, ReLU (high is infinite) or ReLU6.
struct Clamp {
  float low = -INFINITY;
  float high = INFINITY;

  SHOAL_HOST_DEVICE float operator()(float x) const {
    const float raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
  // Whether a gradient passes at the result `y`, or at the unclamped value `y`. Without a clamp it
  // also passes at a y that has overflowed, so that the gradient shows it.
  SHOAL_HOST_DEVICE bool Passes(float y) const {
    // Comparisons with not-a-number are false, so this needs no branch.
    return !(y <= (low > -INFINITY ? low : NAN) || y >= (high < INFINITY ? high : NAN));
  }
  // Returns `gradient` where it passes, else 0.
  template <int width>
  SHOAL_HOST_DEVICE Pack<width> Passed(const Pack<width>& y, const Pack<width>& gradient) const {
    Pack<width> passed;
    for (int i = 0; i < width; ++i) passed[i] = Passes(y[i]) ? gradient[i] : 0;
    return passed;
  }
};

// Mean, variance and gamma / sqrt(variance + epsilon) from the results of ColumnMomentsKernel.
template <typename Element>
struct BatchNormalizationStatisticsKernel {
  static constexpr int kThreads = SliceShares::kThreads;
  static constexpr int kPhases = 3;
  struct Shared {
    double sums[kThreads];
    double squares[kThreads];
  };
  struct ThreadState {
    double mean;
  };

  const Element* x;
  const float* partial;
  ColumnSlices slices;
  int64_t columns;
  const float* gamma;  // null: 1
  float epsilon;
  float* mean;
  float* variance;
  float* factor;

  int64_t blocks() const { return SliceShares::Blocks(columns); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState& own) const {
    const SliceShares share(place);
    const int64_t column = share.column;
    if (column >= columns) return;
    if constexpr (phase == 0) {
      double sum = 0;
      for (int64_t slice = share.first(); slice < slices.count; slice += SliceShares::kShares) {
        sum += MeanOf(slice, column) * static_cast<double>(slices.RowsOf(slice));
      }
      shared.sums[place.thread] = sum;
    } else if constexpr (phase == 1) {
      own.mean = share.Total(shared.sums) / static_cast<double>(slices.rows);
      double squares = 0;
      for (int64_t slice = share.first(); slice < slices.count; slice += SliceShares::kShares) {
        const double distance = MeanOf(slice, column) - own.mean;
        squares += partial[(2 * slice + 1) * columns + column] +
                   distance * distance * static_cast<double>(slices.RowsOf(slice));
      }
      shared.squares[place.thread] = squares;
    } else if (share.first() == 0) {
      const float result =
          static_cast<float>(share.Total(shared.squares) / static_cast<double>(slices.rows));
      mean[column] = static_cast<float>(own.mean);
      variance[column] = result;
      factor[column] = (gamma == nullptr ? 1 : gamma[column]) / std::sqrt(result + epsilon);
    }
  }

 private:
  SHOAL_HOST_DEVICE double MeanOf(int64_t slice, int64_t column) const {
    return double{ToFloat(x[slice * slices.slice_rows * columns + column])} +
           partial[2 * slice * columns + column];
  }
};

// gamma / sqrt(variance + epsilon)
struct NormalizationFactorKernel {
  const float* variance;
  const float* gamma;  // null: 1
  float epsilon;
  int64_t columns;
  float* factor;

  int64_t items() const { return columns; }
  SHOAL_HOST_DEVICE void operator()(int32_t column) const {
    factor[column] = (gamma == nullptr ? 1 : gamma[column]) / std::sqrt(variance[column] + epsilon);
  }
};

// The parameters for a pack of columns.
template <int width>
struct NormalizationOfColumns {
  Pack<width> mean, factor, beta;

  SHOAL_HOST_DEVICE Pack<width> operator()(const Pack<width>& x) const {
    Pack<width> y;
    for (int i = 0; i < width; ++i) y[i] = (x[i] - mean[i]) * factor[i] + beta[i];
    return y;
  }
};

template <int width>
struct Normalization {
  const float* mean;
  const float* factor;
  const float* beta;  // null: 0

  SHOAL_HOST_DEVICE NormalizationOfColumns<width> OfColumn(int32_t column) const {
    return {Load<width>(mean + column), Load<width>(factor + column),
            beta == nullptr ? Pack<width>{} : Load<width>(beta + column)};
  }
};

// y = clamp((x - mean) factor + beta + residual). `y` may be `x` or `residual`.
template <typename Element, int width, bool adds>
struct BatchNormalizationKernel {
  static constexpr int kThreads = ColumnSlices::kThreads;
  static constexpr int kBlocksAtOnce = adds ? 2 : 3;
  static constexpr int kPhases = 1;
  static constexpr int kAtOnce = 4;
  struct Shared {};
  struct ThreadState {};

  const Element* x;
  const Element* residual;  // if `adds`
  Normalization<width> normalization;
  Clamp clamp;
  ColumnSlices slices;
  int32_t columns;
  Element* y;

  int64_t blocks() const { return slices.blocks(); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared&, ThreadState&) const {
    const ColumnShare share(slices, place);
    if (!share.exists) return;
    const int32_t column = share.pack * width;
    const NormalizationOfColumns<width> of_column = normalization.OfColumn(column);
    const int64_t first = share.first_row * columns + column;
    struct Values {
      RawPack<Element, width> x, residual;
    };
    share.ForRows<kAtOnce>(
        0,
        [&](int32_t row) {
          const int64_t at = first + int64_t{row} * columns;
          Values values = {LoadRaw<width>(x + at), {}};
          if constexpr (adds) values.residual = LoadRaw<width>(residual + at);
          return values;
        },
        [&](int32_t row, const Values& values) {
          Pack<width> result = of_column(Unpack(values.x));
          if constexpr (adds) {
            const Pack<width> other = Unpack(values.residual);
            for (int i = 0; i < width; ++i) result[i] += other[i];
          }
          for (int i = 0; i < width; ++i) result[i] = clamp(result[i]);
          Store(result, y + first + int64_t{row} * columns);
        });
  }
};

// dy where the activation passes it. The sum dy + other is first rounded to an Element, as stored.
// This way the mean subtracted later is the mean of the stored values.
template <typename Element, int width, bool adds>
struct ClampedGradient {
  const Element* dy;
  const Element* other;  // if `adds`
  const Element* y;      // with a residual; null: recomputed
  Normalization<width> normalization;
  Clamp clamp;

  struct Values {
    RawPack<Element, width> dy, other, y;
  };
  SHOAL_HOST_DEVICE Values Read(int64_t at) const {
    Values values = {LoadRaw<width>(dy + at), {}, {}};
    if constexpr (adds) values.other = LoadRaw<width>(other + at);
    if (y != nullptr) values.y = LoadRaw<width>(y + at);
    return values;
  }
  SHOAL_HOST_DEVICE Pack<width> Of(const NormalizationOfColumns<width>& of_column,
                                   const Pack<width>& x, const Values& values) const {
    Pack<width> gradient = Unpack(values.dy);
    if constexpr (adds) {
      const Pack<width> more = Unpack(values.other);
      for (int i = 0; i < width; ++i)
        gradient[i] = ToFloat(FromFloat<Element>(gradient[i] + more[i]));
    }
    return clamp.Passed(y == nullptr ? of_column(x) : Unpack(values.y), gradient);
  }
};

// Sums of the clamped gradient: its sum, and the sum of its products with x - mean. Stores the
// clamped gradient, which is also the gradient of the residual.
template <typename Element, int width, bool adds>
struct BatchNormalizationBackwardTerms {
  static constexpr int kSums = 2;
  static constexpr int kWidth = width;
  static constexpr int kAtOnce = 3;

  const Element* x;
  ClampedGradient<Element, width, adds> gradient;
  Element* dresidual;  // null: do not store; may be dy

  struct Values {
    RawPack<Element, width> x;
    typename ClampedGradient<Element, width, adds>::Values gradient;
  };
  SHOAL_HOST_DEVICE NormalizationOfColumns<width> OfColumn(int32_t column) const {
    return gradient.normalization.OfColumn(column);
  }
  SHOAL_HOST_DEVICE Values Read(const NormalizationOfColumns<width>&, int64_t, int64_t at) const {
    return {LoadRaw<width>(x + at), gradient.Read(at)};
  }
  SHOAL_HOST_DEVICE void Add(const NormalizationOfColumns<width>& of_column, const Values& values,
                             int64_t, int64_t at, Pack<width> (&sums)[kSums]) const {
    const Pack<width> in = Unpack(values.x);
    const Pack<width> gradients = gradient.Of(of_column, in, values.gradient);
    if (dresidual != nullptr) Store(gradients, dresidual + at);
    for (int i = 0; i < width; ++i) {
      sums[0][i] += gradients[i];
      sums[1][i] += gradients[i] * (in[i] - of_column.mean[i]);
    }
  }
};

// Computes dgamma and dbeta from these sums, and the coefficients of dx, which account for mean and
// variance: dx = factor (dy - by_mean - (x - mean) by_variance). Also the gradient of a bias added
// to x, which is zero (BatchNormalizationBackwardFusedOp).
struct BatchNormalizationCoefficientsKernel {
  static constexpr int kThreads = SliceShares::kThreads;
  static constexpr int kPhases = 2;
  struct Shared {
    double sums[kThreads];
    double products[kThreads];
  };
  struct ThreadState {};

  const float* partial;
  int64_t slices;
  int64_t rows;
  int64_t columns;
  const float* variance;
  float epsilon;
  bool frozen;
  float* dgamma;
  float* dbeta;
  float* by_mean;
  float* by_variance;
  float* dbias;  // null: do not compute

  int64_t blocks() const { return SliceShares::Blocks(columns); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared& shared, ThreadState&) const {
    const SliceShares share(place);
    const int64_t column = share.column;
    if (column >= columns) return;
    if constexpr (phase == 0) {
      shared.sums[place.thread] = share.SumOf(partial, slices, 2, 0, columns);
      shared.products[place.thread] = share.SumOf(partial, slices, 2, 1, columns);
    } else if (share.first() == 0) {
      const double sum = share.Total(shared.sums), product = share.Total(shared.products);
      const float inverse = 1 / std::sqrt(variance[column] + epsilon);
      dbeta[column] = static_cast<float>(sum);
      dgamma[column] = static_cast<float>(product * inverse);
      by_mean[column] = frozen ? 0 : static_cast<float>(sum / rows);
      by_variance[column] = frozen ? 0 : static_cast<float>(product * inverse * inverse / rows);
      // Not-a-number if dx is, so that the check for non-finite gradients sees it.
      if (dbias != nullptr) dbias[column] = static_cast<float>((sum - sum) + (product - product));
    }
  }
};

// `dx` may be `dy`.
template <typename Element, int width>
struct BatchNormalizationBackwardKernel {
  static constexpr int kThreads = ColumnSlices::kThreads;
  static constexpr int kBlocksAtOnce = ColumnSlices::kBlocksAtOnce;
  static constexpr int kPhases = 1;
  static constexpr int kAtOnce = 4;
  struct Shared {};
  struct ThreadState {};

  const Element* x;
  const Element* dy;
  Normalization<width> normalization;
  Clamp clamp;  // for the normalized value; without a residual
  const float* by_mean;
  const float* by_variance;
  ColumnSlices slices;
  int32_t columns;
  Element* dx;

  int64_t blocks() const { return slices.blocks(); }

  template <int phase>
  SHOAL_HOST_DEVICE void Run(const ThreadPosition& place, Shared&, ThreadState&) const {
    const ColumnShare share(slices, place);
    if (!share.exists) return;
    const int32_t column = share.pack * width;
    const NormalizationOfColumns<width> of_column = normalization.OfColumn(column);
    const Pack<width> of_mean = Load<width>(by_mean + column);
    const Pack<width> of_variance = Load<width>(by_variance + column);
    const int64_t first = share.first_row * columns + column;
    struct Values {
      RawPack<Element, width> x, dy;
    };
    share.ForRows<kAtOnce>(
        0,
        [&](int32_t row) {
          const int64_t at = first + int64_t{row} * columns;
          return Values{LoadRaw<width>(x + at), LoadRaw<width>(dy + at)};
        },
        [&](int32_t row, const Values& values) {
          const Pack<width> in = Unpack(values.x);
          Pack<width> result = clamp.Passed(of_column(in), Unpack(values.dy));
          for (int i = 0; i < width; ++i) {
            const float lacking = of_mean[i] + (in[i] - of_column.mean[i]) * of_variance[i];
            result[i] = of_column.factor[i] * (result[i] - lacking);
          }
          Store(result, dx + first + int64_t{row} * columns);
        });
  }
};

}  // namespace shoal::cuda
