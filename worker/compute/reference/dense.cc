#include "worker/compute/reference/kernels.h"

namespace shoal::reference {
namespace {

template <typename Scalar>
void Dense(const Arguments<Scalar>& a) {
  const View<const Scalar>& x = a.inputs[0];
  const Scalar* kernel = a.inputs[1].data;
  const int64_t in = x.columns(), out = a.output.columns();
  for (int64_t row = 0; row < a.output.rows(); ++row) {
    for (int64_t n = 0; n < out; ++n) {
      double sum = a.inputs.size() == 3 ? a.inputs[2].data[n] : 0;
      for (int64_t k = 0; k < in; ++k) sum += double{x.data[row * in + k]} * kernel[k * out + n];
      a.output.data[row * out + n] = static_cast<Scalar>(sum);
    }
  }
}

template <typename Scalar>
void DenseBackwardData(const Arguments<Scalar>& a) {
  const View<const Scalar>& dy = a.inputs[0];
  const Scalar* kernel = a.inputs[1].data;
  const int64_t in = a.output.columns(), out = dy.columns();
  for (int64_t row = 0; row < a.output.rows(); ++row) {
    for (int64_t k = 0; k < in; ++k) {
      double sum = 0;
      for (int64_t n = 0; n < out; ++n) sum += double{dy.data[row * out + n]} * kernel[k * out + n];
      a.output.data[row * in + k] = static_cast<Scalar>(sum);
    }
  }
}

template <typename Scalar>
void DenseBackwardWeights(const Arguments<Scalar>& a) {
  const View<const Scalar>& x = a.inputs[0];
  const View<const Scalar>& dy = a.inputs[1];
  const int64_t in = x.columns(), out = dy.columns();
  for (int64_t k = 0; k < in; ++k) {
    for (int64_t n = 0; n < out; ++n) {
      double sum = 0;
      for (int64_t row = 0; row < x.rows(); ++row) {
        sum += double{x.data[row * in + k]} * dy.data[row * out + n];
      }
      a.output.data[k * out + n] = static_cast<Scalar>(sum);
    }
  }
}

template <typename Scalar>
void BiasBackward(const Arguments<Scalar>& a) {
  const View<const Scalar>& dy = a.inputs[0];
  for (int64_t n = 0; n < dy.columns(); ++n) {
    double sum = 0;
    for (int64_t row = 0; row < dy.rows(); ++row) sum += dy.data[row * dy.columns() + n];
    a.output.data[n] = static_cast<Scalar>(sum);
  }
}

}  // namespace

template <typename Scalar>
void AddDenseKernels(KernelTable<Scalar>& table) {
  table["Dense"] = Dense<Scalar>;
  table["DenseBackwardData"] = DenseBackwardData<Scalar>;
  table["DenseBackwardWeights"] = DenseBackwardWeights<Scalar>;
  table["BiasBackward"] = BiasBackward<Scalar>;
}
template void AddDenseKernels(KernelTable<float>& table);
template void AddDenseKernels(KernelTable<double>& table);

}  // namespace shoal::reference
