#include <limits>

#include "worker/compute/op_math/row_of_id.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Gather(const Arguments& a) {
  const View<const double>& table = a.inputs[0];
  for (int64_t i = 0; i < a.output().size(); ++i) {
    const int64_t column = i % table.columns();
    const int64_t row = RowOfId(a.inputs[1].data[i / table.columns()], table.rows());
    a.output().data[i] = row < 0 ? std::numeric_limits<double>::quiet_NaN()
                                 : table.data[row * table.columns() + column];
  }
}

void GatherBackward(const Arguments& a) {
  const View<const double>& dy = a.inputs[1];
  for (int64_t i = 0; i < dy.size(); ++i) {
    const int64_t column = i % dy.columns();
    const int64_t row = RowOfId(a.inputs[0].data[i / dy.columns()], a.output().rows());
    if (row >= 0) a.output().data[row * dy.columns() + column] += dy.data[i];
  }
}

}  // namespace shoal::reference
