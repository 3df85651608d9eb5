#include <cmath>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Glu(const Arguments& a) {
  const int64_t half = a.output().columns();
  for (int64_t i = 0; i < a.output().size(); ++i) {
    const double* x = a.inputs[0].data + i + i / half * half;
    a.output().data[i] = x[0] / (1 + std::exp(-x[half]));
  }
}

void GluBackward(const Arguments& a) {
  const int64_t half = a.inputs[1].columns();
  for (int64_t i = 0; i < a.inputs[1].size(); ++i) {
    const int64_t place = i + i / half * half;
    const double* x = a.inputs[0].data + place;
    double* dx = a.output().data + place;
    const double sigmoid = 1 / (1 + std::exp(-x[half])), dy = a.inputs[1].data[i];
    dx[0] = dy * sigmoid;
    dx[half] = dy * x[0] * sigmoid * (1 - sigmoid);
  }
}

}  // namespace shoal::reference
