#include "common/model/ops/reduce.h"

#include <algorithm>
#include <limits>

#include "worker/compute/op_math/elementwise_functions.h"
#include "worker/compute/reference/kernels.h"
#include "worker/compute/reference/repeated_index.h"

namespace shoal::reference {

void SumTo(const Arguments& a) {
  const View<const double>& x = a.inputs[0];
  for (int64_t i = 0; i < x.size(); ++i) {
    a.output().data[RepeatedIndex(i, a.output().shape, x.shape)] += x.data[i];
  }
}

void MaxTo(const Arguments& a) {
  const View<const double>& x = a.inputs[0];
  std::fill_n(a.output().data, a.output().size(), -std::numeric_limits<double>::infinity());
  for (int64_t i = 0; i < x.size(); ++i) {
    double& largest = a.output().data[RepeatedIndex(i, a.output().shape, x.shape)];
    largest = shoal::Binary<BinaryOp::Kind::kMaximum>(largest, x.data[i]);
  }
}

void BroadcastLike(const Arguments& a) {
  const View<double>& y = a.output();
  for (int64_t i = 0; i < y.size(); ++i) {
    y.data[i] = a.inputs[0].data[RepeatedIndex(i, a.inputs[0].shape, y.shape)];
  }
}

void MeanGradient(const Arguments& a) {
  std::fill_n(a.output().data, a.output().size(), 1.0 / static_cast<double>(a.output().shape[0]));
}

}  // namespace shoal::reference
