#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Dense(const Arguments& a) {
  const View<const double>& x = a.inputs[0];
  const double* kernel = a.inputs[1].data;
  const int64_t in = x.columns(), out = a.output().columns();
  for (int64_t row = 0; row < a.output().rows(); ++row) {
    for (int64_t n = 0; n < out; ++n) {
      double sum = a.inputs.size() == 3 ? a.inputs[2].data[n] : 0;
      for (int64_t k = 0; k < in; ++k) sum += x.data[row * in + k] * kernel[k * out + n];
      a.output().data[row * out + n] = sum;
    }
  }
}

void DenseBackwardData(const Arguments& a) {
  const View<const double>& dy = a.inputs[0];
  const double* kernel = a.inputs[1].data;
  const int64_t in = a.output().columns(), out = dy.columns();
  for (int64_t row = 0; row < a.output().rows(); ++row) {
    for (int64_t k = 0; k < in; ++k) {
      double sum = 0;
      for (int64_t n = 0; n < out; ++n) sum += dy.data[row * out + n] * kernel[k * out + n];
      a.output().data[row * in + k] = sum;
    }
  }
}

void DenseBackwardWeights(const Arguments& a) {
  const View<const double>& x = a.inputs[0];
  const View<const double>& dy = a.inputs[1];
  const int64_t in = x.columns(), out = dy.columns();
  for (int64_t k = 0; k < in; ++k) {
    for (int64_t n = 0; n < out; ++n) {
      double sum = 0;
      for (int64_t row = 0; row < x.rows(); ++row) {
        sum += x.data[row * in + k] * dy.data[row * out + n];
      }
      a.output().data[k * out + n] = sum;
    }
  }
}

}  // namespace shoal::reference
