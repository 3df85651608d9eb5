#include "common/model/training/penalty.h"

#include <memory>
#include <vector>

#include "common/model/ops/dense.h"
#include "common/model/ops/reduce.h"
#include "common/model/training/expression.h"

namespace shoal {
namespace {

// keras.ops.normalize treats a vector as no shorter than the square root of this.
constexpr double kMinSquare = 1e-14;

// The sum of all elements, [1]. It sums along all axes but the last first, for which backends have
// fast code.
Expression Sum(Expression x) {
  const auto sum_to = [](Expression of, Shape shape) {
    auto op = std::make_shared<SumToOp>();
    op->shape = std::move(shape);
    return Expression{of.context, of.context->Add(std::move(op), {of.id})};
  };
  if (x.id == kNoValue) return x;
  return sum_to(x.shape().size() > 1 ? sum_to(x, {x.shape().back()}) : x, {1});
}

// The sum of all terms. Requires at least one.
Expression Total(const std::vector<Expression>& terms) {
  Expression total = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) total = total + terms[i];
  return total;
}

// The vectors that the penalty makes orthogonal, and values computed from them.
struct Orthogonality {
  Orthogonality(const Regularizer& regularizer, Expression w)
      : columns(regularizer.of_columns),
        length(SquareRoot(AtLeast(SumAlong(Square(w)), kMinSquare))),
        unit(w / length) {
    const Shape& shape = w.shape();
    const auto count = static_cast<double>(shape[columns ? 1 : 0]);
    // A single vector has no other to be orthogonal to. Keras divides by zero in this case.
    weight = count > 1 ? regularizer.orthogonal / (count * (count - 1)) : 0;
    product = columns ? Multiply<DenseBackwardWeightsOp>(unit, unit)  // u^T u
                      : Multiply<DenseBackwardDataOp>(unit, unit);    // u u^T
  }

  // Sums along each vector and keeps the axis with extent 1.
  Expression SumAlong(Expression x) const { return SumOver(x, {columns ? 0 : 1}); }

  template <typename Product>
  static Expression Multiply(Expression a, Expression b) {
    return {a.context, a.context->Add(std::make_shared<Product>(), {a.id, b.id})};
  }

  const bool columns;
  const Expression length, unit;
  double weight;
  Expression product;  // products of all pairs of unit vectors
};

}  // namespace

Expression Penalty(const Regularizer& regularizer, Expression w) {
  std::vector<Expression> terms;
  if (regularizer.l1 != 0) terms.push_back(regularizer.l1 * Sum(Abs(w)));
  if (regularizer.l2 != 0) terms.push_back(regularizer.l2 * Sum(Square(w)));
  if (regularizer.orthogonal != 0) {
    const Orthogonality all(regularizer, w);
    // Subtracts the product of each vector with itself, which does not count.
    terms.push_back(all.weight * (Sum(Abs(all.product)) - Sum(Square(all.unit))));
  }
  return Total(terms);
}

Expression PenaltyOfExamples(const Regularizer& regularizer, Expression outputs) {
  std::vector<Expression> terms;
  if (regularizer.l1 != 0) terms.push_back(regularizer.l1 * Abs(outputs));
  if (regularizer.l2 != 0) terms.push_back(regularizer.l2 * Square(outputs));
  return SumOfExamples(Total(terms));
}

Expression PenaltyGradient(const Regularizer& regularizer, Expression w) {
  std::vector<Expression> terms;
  if (regularizer.l1 != 0) terms.push_back(regularizer.l1 * Sign(w));
  if (regularizer.l2 != 0) terms.push_back((2 * regularizer.l2) * w);
  if (regularizer.orthogonal != 0) {
    const Orthogonality all(regularizer, w);
    const Expression sign = Sign(all.product);
    const Expression of_all = all.columns ? Orthogonality::Multiply<DenseOp>(all.unit, sign)
                                          : Orthogonality::Multiply<DenseOp>(sign, all.unit);
    const Expression of_units = of_all - all.unit;  // each pair counts twice
    const Expression along = all.SumAlong(of_units * all.unit);
    terms.push_back((2 * all.weight) * ((of_units - along * all.unit) / all.length));
  }
  return Total(terms);
}

}  // namespace shoal
