#include "worker/compute/op_math/loss_functions.h"
#include "worker/compute/reference/kernels.h"

namespace shoal::reference {

void Loss(const Arguments& a) {
  const View<const double>& prediction = a.inputs[0];
  const int64_t length = LossRowLength(prediction.shape);
  const int64_t inner = prediction.size() / length / a.output().size();  // rows per example
  LossRow<double> row(static_cast<const LossOp&>(a.op).attributes, length);
  for (int64_t b = 0; b < a.output().size(); ++b) {
    double sum = 0;
    for (int64_t r = b * inner; r < (b + 1) * inner; ++r) {
      sum += row.Loss(prediction.data + r * length, a.inputs[1].data + r * row.target_stride());
    }
    a.output().data[b] = sum / inner;
  }
}

void LossBackward(const Arguments& a) {
  const View<const double>& prediction = a.inputs[0];
  const int64_t length = LossRowLength(prediction.shape);
  const int64_t rows = prediction.size() / length;
  const auto& op = static_cast<const LossBackwardOp&>(a.op);
  const double scale = (op.of_sum ? static_cast<double>(prediction.shape[0]) : 1.0) / rows;
  LossRow<double> row(op.attributes, length);
  for (int64_t r = 0; r < rows; ++r) {
    row.Gradient(prediction.data + r * length, a.inputs[1].data + r * row.target_stride(), scale,
                 a.output().data + r * length);
  }
}

}  // namespace shoal::reference
