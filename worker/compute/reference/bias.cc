#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void BiasBackward(const Arguments& a) {
  const View<const double>& dy = a.inputs[0];
  for (int64_t n = 0; n < dy.columns(); ++n) {
    double sum = 0;
    for (int64_t row = 0; row < dy.rows(); ++row) sum += dy.data[row * dy.columns() + n];
    a.output().data[n] = sum;
  }
}

}  // namespace shoal::reference
