#pragma once

#include <cmath>

#include "common/model/ops/dropout.h"
#include "common/model/ops/random_uniform.h"
#include "common/model/ops/unary.h"
#include "worker/compute/cuda/kernels/divisor.h"
#include "worker/compute/cuda/kernels/kernel.h"
#include "worker/compute/cuda/kernels/pack.h"
#include "worker/compute/op_math/dropout_mask.h"
#include "worker/compute/op_math/elementwise_functions.h"
#include "worker/compute/op_math/step_random.h"
#include "worker/compute/program/run_context.h"

// Elementwise functions that are not worth packs. Still bound by bandwidth.

namespace shoal::cuda {

// UnaryOp's attributes, without its host-only members.
struct UnaryAttributes {
  UnaryOp::Kind kind;
  double exponent;
  double low;
  double high;
};

struct UnaryKernel {
  UnaryAttributes attributes;
  const float* x;
  float* y;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    y[item] = shoal::Unary(attributes, x[item]);
  }
};

// DropoutOp in training, and its gradient, with the random numbers that all backends use. `context`
// is in the device's memory.
struct DropoutKernel {
  const RunContext* context;
  uint64_t layer_seed;
  double rate;
  DropoutGroups groups;
  int64_t example_size;  // elements
  const float* x;
  float* y;
  int64_t count;

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const DropoutMask mask(*context, layer_seed, rate);
    const int64_t element = context->first_example * example_size + item;
    // DropoutGroups::Of
    const int64_t group = element / groups.block * groups.period + element % groups.period;
    y[item] = x[item] * mask.Factor<float>(group);
  }
};

// Random number `number` of each example of a RandomUniformOp.
struct RandomUniformKernel {
  const RunContext* context;
  uint64_t layer_seed;
  RandomUniformOp::Range range;
  bool whole;
  bool one_of_batch;
  int64_t number;
  int64_t numbers;  // per example
  float* y;         // [examples, numbers]
  int64_t examples;

  int64_t items() const { return examples; }
  SHOAL_HOST_DEVICE void operator()(int32_t example) const {
    const StepRandom random(*context, layer_seed);
    const int64_t first = one_of_batch ? 0 : (context->first_example + example) * numbers;
    y[example * numbers + number] = UniformIn(range, whole, random.Bits(first + number));
  }
};

// GluOp: x is [rows, 2 half].
struct GluKernel {
  const float* x;
  float* y;
  int64_t half;
  int64_t count;  // of y

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const float* const at = x + item + item / half * half;
    y[item] = at[0] / (1 + std::exp(-at[half]));
  }
};

struct GluBackwardKernel {
  const float* x;
  const float* dy;
  float* dx;
  int64_t half;
  int64_t count;  // of dy

  int64_t items() const { return count; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    const int64_t at = item + item / half * half;
    const float sigmoid = 1 / (1 + std::exp(-x[at + half])), gradient = dy[item];
    dx[at] = gradient * sigmoid;
    dx[at + half] = gradient * x[at] * sigmoid * (1 - sigmoid);
  }
};

// RescaleOp for neighbouring channels, at most as many as fit into a kernel's arguments. If these
// are all channels, packs may span them.
template <typename Element, int width>
struct RescaleKernel {
  static constexpr int kMaxChannels = 64;

  const float* x;
  Element* y;
  int64_t rows;
  int64_t columns;
  int64_t first;        // channel
  int32_t channels;     // channels from `first` on; all of them if width is not 1
  Divisor by_channels;  // `channels`
  float scale[kMaxChannels];
  float offset[kMaxChannels];

  int64_t items() const { return rows * channels / width; }
  SHOAL_HOST_DEVICE void operator()(int32_t item) const {
    int32_t channel = item % by_channels * width % by_channels;
    const int64_t at = width == 1 ? int64_t{item / by_channels} * columns + first + channel
                                  : int64_t{item} * width;
    Pack<width> pack = Load<width>(x + at);
    for (int i = 0; i < width; ++i) {
      pack[i] = pack[i] * scale[channel] + offset[channel];
      channel = channel + 1 == channels ? 0 : channel + 1;
    }
    Store(pack, y + at);
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
