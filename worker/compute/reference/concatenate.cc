#include "common/model/ops/concatenate.h"

#include <algorithm>

#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Concatenate(const Arguments& a) {
  const int axis = static_cast<const ConcatenateOp&>(a.op).axis;
  const Shape& shape = a.output().shape;
  const int64_t outer = ElementCount(Shape(shape.begin(), shape.begin() + axis));
  double* y = a.output().data;
  for (int64_t i = 0; i < outer; ++i) {
    for (const View<const double>& x : a.inputs) {
      const int64_t run = x.size() / outer;
      y = std::copy_n(x.data + i * run, run, y);
    }
  }
}

}  // namespace shoal::reference
