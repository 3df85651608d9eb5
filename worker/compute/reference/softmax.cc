#include <algorithm>
#include <cmath>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Softmax(const Arguments& a) {
  const int64_t columns = a.output().columns();
  for (int64_t row = 0; row < a.output().rows(); ++row) {
    const double* x = a.inputs[0].data + row * columns;
    double* y = a.output().data + row * columns;
    const double largest = *std::max_element(x, x + columns);
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += y[i] = std::exp(x[i] - largest);
    for (int64_t i = 0; i < columns; ++i) y[i] = y[i] / sum;
  }
}

void SoftmaxBackward(const Arguments& a) {
  const int64_t columns = a.output().columns();
  for (int64_t row = 0; row < a.output().rows(); ++row) {
    const double* y = a.inputs[0].data + row * columns;
    const double* dy = a.inputs[1].data + row * columns;
    double dot = 0;
    for (int64_t i = 0; i < columns; ++i) dot += y[i] * dy[i];
    for (int64_t i = 0; i < columns; ++i) {
      a.output().data[row * columns + i] = y[i] * (dy[i] - dot);
    }
  }
}

}  // namespace shoal::reference
