#include "common/model/training/expression.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/model/ops/binary.h"
#include "common/model/ops/reduce.h"
#include "common/model/ops/rescale.h"
#include "common/model/ops/reshape.h"
#include "common/model/ops/softmax.h"
#include "common/model/ops/unary.h"

namespace shoal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Expression Append(Expression x, std::shared_ptr<const Op> op) {
  return {x.context, x.context->Add(std::move(op), {x.id})};
}

Expression Binary(BinaryOp::Kind kind, Expression a, Expression b) {
  auto op = std::make_shared<BinaryOp>();
  op->kind = kind;
  return {a.context, a.context->Add(std::move(op), {a.id, b.id})};
}

Expression Unary(Expression x, UnaryOp attributes) {
  return Append(x, std::make_shared<UnaryOp>(std::move(attributes)));
}

Expression Unary(Expression x, UnaryOp::Kind kind) {
  UnaryOp op;
  op.kind = kind;
  return Unary(x, op);
}

Expression Rescale(Expression x, double scale, double offset) {
  auto op = std::make_shared<RescaleOp>();
  op->scale = {scale};
  op->offset = {offset};
  return Append(x, std::move(op));
}

Expression SumTo(Expression x, Shape shape) {
  auto op = std::make_shared<SumToOp>();
  op->shape = std::move(shape);
  return Append(x, std::move(op));
}

}  // namespace

ValueId FormulaContext::Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
  if (!status_.ok()) return kNoValue;
  const absl::StatusOr<ValueId> value =
      graph_->Add(std::move(op), std::move(inputs), layer_, /*value_name=*/"", compute_dtype_);
  if (value.ok()) return *value;
  status_ = value.status();
  return kNoValue;
}

Expression operator+(Expression a, Expression b) { return Binary(BinaryOp::Kind::kAdd, a, b); }
Expression operator-(Expression a, Expression b) { return Binary(BinaryOp::Kind::kSubtract, a, b); }
Expression operator*(Expression a, Expression b) { return Binary(BinaryOp::Kind::kMultiply, a, b); }
Expression operator/(Expression a, Expression b) { return Binary(BinaryOp::Kind::kDivide, a, b); }
Expression Maximum(Expression a, Expression b) { return Binary(BinaryOp::Kind::kMaximum, a, b); }
Expression operator+(Expression a, double b) { return Rescale(a, 1, b); }
Expression operator-(Expression a, double b) { return Rescale(a, 1, -b); }
Expression operator-(double a, Expression b) { return Rescale(b, -1, a); }
Expression operator*(double a, Expression b) { return Rescale(b, a, 0); }
Expression operator-(Expression a) { return Rescale(a, -1, 0); }

Expression Exp(Expression x) { return Unary(x, UnaryOp::Kind::kExp); }
Expression Log(Expression x) { return Unary(x, UnaryOp::Kind::kLog); }
Expression Abs(Expression x) { return Unary(x, UnaryOp::Kind::kAbs); }
Expression Sign(Expression x) { return Unary(x, UnaryOp::Kind::kSign); }
Expression Square(Expression x) { return Unary(x, UnaryOp::Kind::kSquare); }
Expression SquareRoot(Expression x) { return Unary(x, UnaryOp::Kind::kSquareRoot); }

Expression Power(Expression x, double exponent) {
  UnaryOp op;
  op.kind = UnaryOp::Kind::kPower;
  op.exponent = exponent;
  return Unary(x, op);
}

Expression Clip(Expression x, double low, double high) {
  UnaryOp op;
  op.kind = UnaryOp::Kind::kClip;
  op.low = low;
  op.high = high;
  return Unary(x, op);
}

Expression AtLeast(Expression x, double low) { return Clip(x, low, kInfinity); }
Expression AtMost(Expression x, double high) { return Clip(x, -kInfinity, high); }

Expression Activate(Expression x, ActivationAttributes::Kind kind) {
  auto op = std::make_shared<ActivationOp>();
  op->attributes.kind = kind;
  return Append(x, std::move(op));
}

Expression Softmax(Expression x) { return Append(x, std::make_shared<SoftmaxOp>()); }

Expression SumOfRows(Expression x) {
  if (x.id == kNoValue || x.shape().size() < 2) return x;
  return SumOver(x, {static_cast<int>(x.shape().size()) - 1});
}

Expression MaximumOfRows(Expression x) {
  if (x.id == kNoValue || x.shape().size() < 2) return x;
  auto op = std::make_shared<MaxToOp>();
  op->shape = x.shape();
  op->shape.back() = 1;
  return Append(x, std::move(op));
}

Expression SumOver(Expression x, const std::vector<int>& axes) {
  if (x.id == kNoValue) return x;
  Shape shape = x.shape();
  for (const int axis : axes) shape[axis] = 1;
  if (axes.empty()) std::fill(shape.begin(), shape.end(), 1);
  return SumTo(x, std::move(shape));
}

Expression SumOfExamples(Expression x) {
  if (x.id == kNoValue || x.shape().size() == 1) return x;
  Shape ones(x.shape().size(), 1);
  ones[0] = x.shape()[0];
  auto op = std::make_shared<ReshapeOp>();
  op->shape = {ones[0]};
  return Append(SumTo(x, std::move(ones)), std::move(op));
}

Expression MeanOfExamples(Expression x) {
  if (x.id == kNoValue) return x;
  const Shape& shape = x.shape();
  int64_t elements = 1;
  for (size_t i = 1; i < shape.size(); ++i) elements *= shape[i];
  const Expression sum = SumOfExamples(x);
  return elements > 1 ? (1.0 / static_cast<double>(elements)) * sum : sum;
}

Expression RepeatForExamples(Expression x, Expression like) {
  if (x.id == kNoValue || like.id == kNoValue) return x;
  const double elements = static_cast<double>(ElementCount(x.shape()));
  const Expression mean = (1 / elements) * SumTo(x, {1});
  const Expression examples = MeanOfExamples(like);
  return {x.context, x.context->Add(std::make_shared<BroadcastLikeOp>(), {mean.id, examples.id})};
}

}  // namespace shoal
