#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Add(const Arguments& a) {
  for (int64_t i = 0; i < a.output().size(); ++i) {
    double sum = 0;
    for (const View<const double>& input : a.inputs) sum += input.data[i];
    a.output().data[i] = sum;
  }
}

}  // namespace shoal::reference
