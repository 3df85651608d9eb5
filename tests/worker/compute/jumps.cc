#include "tests/worker/compute/jumps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/model/ops/activation.h"
#include "common/model/ops/pool2d.h"

namespace shoal {
namespace {

// More than float32 loses on the way to a value, as a share of the largest value of the tensor.
constexpr double kNear = 1e-5;

double DistanceIn(const std::vector<double>& values) {
  double largest = 1;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return kNear * largest;
}

bool IsNearAnEnd(const ActivationAttributes& relu, const std::vector<double>& x) {
  const double distance = DistanceIn(x);
  // A number that is the end itself, as zeros are, stays so when it is rounded.
  const auto is_near = [&](double value, double end) {
    return value != end && std::abs(value - end) < distance;
  };
  return std::any_of(x.begin(), x.end(), [&](double value) {
    return is_near(value, relu.threshold) ||
           (relu.max_value >= 0 && is_near(value, relu.max_value));
  });
}

bool HasTwoLargest(const Window& window, const Shape& y_shape, const Shape& x_shape,
                   const std::vector<double>& x) {
  const double distance = DistanceIn(x);
  const int64_t height = x_shape[1], width = x_shape[2], channels = x_shape[3];
  for (int64_t i = 0; i < ElementCount(y_shape); ++i) {
    const int64_t channel = i % channels, column = i / channels % y_shape[2];
    const int64_t row = i / channels / y_shape[2] % y_shape[1];
    const int64_t example = i / channels / y_shape[2] / y_shape[1];
    double largest = -std::numeric_limits<double>::infinity(), second = largest;
    bool has_nan = false;  // then rounding decides nothing
    for (int64_t a = 0; a < window.size[0]; ++a) {
      for (int64_t b = 0; b < window.size[1]; ++b) {
        const int64_t h = row * window.strides[0] + a - window.PaddingBefore(0, height);
        const int64_t w = column * window.strides[1] + b - window.PaddingBefore(1, width);
        if (h < 0 || h >= height || w < 0 || w >= width) continue;
        const double value = x[((example * height + h) * width + w) * channels + channel];
        has_nan |= std::isnan(value);
        second = std::max(second, std::min(largest, value));
        largest = std::max(largest, value);
      }
    }
    // Zeros stay equal when they are rounded, the results of different sums may not.
    const bool zeros = largest == 0 && second == 0;
    if (!zeros && !has_nan && largest - second < distance) return true;
  }
  return false;
}

}  // namespace

bool IsNearAJump(const TrainingGraph& training, const DoubleInterpreter& interpreter) {
  const Graph& graph = training.graph;
  return std::any_of(
      graph.nodes().begin(), graph.nodes().begin() + training.forward_nodes, [&](const Node& node) {
        if (const auto* activation = dynamic_cast<const ActivationOp*>(node.op.get())) {
          return activation->attributes.kind == ActivationAttributes::Kind::kRelu &&
                 IsNearAnEnd(activation->attributes, interpreter.value(node.inputs[0]));
        }
        const auto* pool = dynamic_cast<const Pool2DOp*>(node.op.get());
        return pool != nullptr && pool->kind == Pool2DOp::Kind::kMax &&
               HasTwoLargest(pool->window, graph.value(node.outputs[0]).shape,
                             graph.value(node.inputs[0]).shape, interpreter.value(node.inputs[0]));
      });
}

}  // namespace shoal
