#include <algorithm>
#include <cmath>

#include "common/model/ops.h"
#include "worker/compute/activation_functions.h"
#include "worker/compute/dropout_mask.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

template <typename Scalar>
void Reshape(const Arguments<Scalar>& a) {
  std::copy_n(a.inputs[0].data, a.output.size(), a.output.data);
}

// Forward and backward are the same function: a product with the mask.
template <typename Scalar>
void ApplyDropout(const Arguments<Scalar>& a, double rate, uint64_t layer_seed) {
  const DropoutMask mask(a.job_seed, a.step, layer_seed, rate);
  for (int64_t i = 0; i < a.output.size(); ++i) {
    const Scalar x = a.inputs[0].data[i];
    a.output.data[i] = a.dropout ? x * mask.Factor<Scalar>(i) : x;
  }
}

template <typename Scalar>
void Dropout(const Arguments<Scalar>& a) {
  const auto& op = static_cast<const DropoutOp&>(a.op);
  ApplyDropout(a, op.rate, op.layer_seed);
}

template <typename Scalar>
void DropoutBackward(const Arguments<Scalar>& a) {
  const auto& op = static_cast<const DropoutBackwardOp&>(a.op);
  ApplyDropout(a, op.rate, op.layer_seed);
}

template <typename Scalar>
void Activation(const Arguments<Scalar>& a) {
  const auto& op = static_cast<const ActivationOp&>(a.op);
  for (int64_t i = 0; i < a.output.size(); ++i) {
    a.output.data[i] = Activate(op.attributes, a.inputs[0].data[i]);
  }
}

template <typename Scalar>
void ActivationBackward(const Arguments<Scalar>& a) {
  const auto& op = static_cast<const ActivationBackwardOp&>(a.op);
  for (int64_t i = 0; i < a.output.size(); ++i) {
    const Scalar x = a.inputs[0].data[i], y = a.inputs[1].data[i], dy = a.inputs[2].data[i];
    a.output.data[i] = dy * ActivationDerivative(op.attributes, x, y);
  }
}

template <typename Scalar>
void Softmax(const Arguments<Scalar>& a) {
  const int64_t columns = a.output.columns();
  for (int64_t row = 0; row < a.output.rows(); ++row) {
    const Scalar* x = a.inputs[0].data + row * columns;
    Scalar* y = a.output.data + row * columns;
    const Scalar largest = *std::max_element(x, x + columns);
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - largest);
    for (int64_t i = 0; i < columns; ++i) y[i] = static_cast<Scalar>(y[i] / sum);
  }
}

template <typename Scalar>
void SoftmaxBackward(const Arguments<Scalar>& a) {
  const int64_t columns = a.output.columns();
  for (int64_t row = 0; row < a.output.rows(); ++row) {
    const Scalar* y = a.inputs[0].data + row * columns;
    const Scalar* dy = a.inputs[1].data + row * columns;
    double dot = 0;
    for (int64_t i = 0; i < columns; ++i) dot += double{y[i]} * dy[i];
    for (int64_t i = 0; i < columns; ++i) {
      a.output.data[row * columns + i] = static_cast<Scalar>(y[i] * (dy[i] - dot));
    }
  }
}

template <typename Scalar>
void Rescale(const Arguments<Scalar>& a) {
  const auto& op = static_cast<const RescaleOp&>(a.op);
  for (int64_t i = 0; i < a.output.size(); ++i) {
    const int64_t channel = i % a.output.columns();
    const double scale = op.scale[op.scale.size() == 1 ? 0 : channel];
    const double offset = op.offset[op.offset.size() == 1 ? 0 : channel];
    a.output.data[i] = static_cast<Scalar>(a.inputs[0].data[i] * scale + offset);
  }
}

template <typename Scalar>
void Add(const Arguments<Scalar>& a) {
  for (int64_t i = 0; i < a.output.size(); ++i) {
    double sum = 0;
    for (const View<const Scalar>& input : a.inputs) sum += input.data[i];
    a.output.data[i] = static_cast<Scalar>(sum);
  }
}

}  // namespace

template <typename Scalar>
void AddElementwiseKernels(KernelTable<Scalar>& table) {
  table["Reshape"] = Reshape<Scalar>;
  table["Dropout"] = Dropout<Scalar>;
  table["DropoutBackward"] = DropoutBackward<Scalar>;
  table["Activation"] = Activation<Scalar>;
  table["ActivationBackward"] = ActivationBackward<Scalar>;
  table["Softmax"] = Softmax<Scalar>;
  table["SoftmaxBackward"] = SoftmaxBackward<Scalar>;
  table["Rescale"] = Rescale<Scalar>;
  table["Add"] = Add<Scalar>;
}
template void AddElementwiseKernels(KernelTable<float>& table);
template void AddElementwiseKernels(KernelTable<double>& table);

}  // namespace shoal::reference
