#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "common/model/ops/activation.h"

// Formulas over the values of a graph, written as such: each operator appends a node.
//   const Expression error = prediction - target;
//   return Mean(Square(error));

namespace shoal {

// The graph that a formula is appended to, and the first error in it, after which nothing more is.
// Not thread-safe.
class FormulaContext {
 public:
  // Nodes bear the name of `layer` and what it computes in. The graph outlives this.
  FormulaContext(Graph* graph, std::string layer,
                 ComputeDtype compute_dtype = ComputeDtype::kFloat32)
      : graph_(graph), layer_(std::move(layer)), compute_dtype_(compute_dtype) {}

  const Graph& graph() const { return *graph_; }
  // kNoValue after an error, and where an input is that.
  ValueId Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // Makes `error` that of the formula, unless it has one.
  void Fail(absl::Status error) {
    if (status_.ok()) status_ = std::move(error);
  }
  const absl::Status& status() const { return status_; }

 private:
  Graph* const graph_;
  const std::string layer_;
  const ComputeDtype compute_dtype_;
  absl::Status status_;
};

// One value of the graph. The context outlives it.
struct Expression {
  FormulaContext* context = nullptr;
  ValueId id = kNoValue;

  // Of a value that is there.
  const Shape& shape() const { return context->graph().value(id).shape; }
};

// Shapes broadcast (BinaryOp).
Expression operator+(Expression a, Expression b);
Expression operator-(Expression a, Expression b);
Expression operator*(Expression a, Expression b);
Expression operator/(Expression a, Expression b);
Expression Maximum(Expression a, Expression b);
Expression operator+(Expression a, double b);
Expression operator-(Expression a, double b);
Expression operator-(double a, Expression b);
Expression operator*(double a, Expression b);
Expression operator-(Expression a);

Expression Exp(Expression x);
Expression Log(Expression x);
Expression Abs(Expression x);
Expression Sign(Expression x);  // 0 of 0; without a gradient
Expression Square(Expression x);
Expression SquareRoot(Expression x);
Expression Power(Expression x, double exponent);
// The nearest in [low, high], infinite ones included.
Expression Clip(Expression x, double low, double high);
Expression AtLeast(Expression x, double low);
Expression AtMost(Expression x, double high);
Expression Activate(Expression x, ActivationAttributes::Kind kind);
Expression Softmax(Expression x);

// Over the last axis, which stays, with extent 1. Of x with one axis, x itself.
Expression SumOfRows(Expression x);
Expression MaximumOfRows(Expression x);
// Sums along `axes`, which stay, with extent 1; along all, the batch's too, where there are none.
Expression SumOver(Expression x, const std::vector<int>& axes);
// The sum of each example, and the mean, one along the first axis: (None, ...) -> (None).
Expression SumOfExamples(Expression x);
Expression MeanOfExamples(Expression x);
// The mean of x for each example of `like`: -> (None).
Expression RepeatForExamples(Expression x, Expression like);

}  // namespace shoal
