#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "common/model/ops/activation.h"

// Formulas over the values of a graph, written as C++ expressions. Each operator appends a node.
//   const Expression error = prediction - target;
//   return Mean(Square(error));

namespace shoal {

// The graph to which formulas append their nodes, and the first error in them. After an error,
// nothing more is appended. Not thread-safe.
class FormulaContext {
 public:
  // Appended nodes get the name of `layer` and its compute dtype. The graph outlives this.
  FormulaContext(Graph* graph, std::string layer,
                 ComputeDtype compute_dtype = ComputeDtype::kFloat32)
      : graph_(graph), layer_(std::move(layer)), compute_dtype_(compute_dtype) {}

  const Graph& graph() const { return *graph_; }
  // Appends a node and returns its output. Returns kNoValue after an error, or if an input is
  // kNoValue.
  ValueId Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  // Records `error`, unless an earlier one is recorded.
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

  // Requires a value other than kNoValue.
  const Shape& shape() const { return context->graph().value(id).shape; }
};

// Shapes broadcast, as BinaryOp's do.
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
Expression Sign(Expression x);  // Sign(0) is 0; has no gradient
Expression Square(Expression x);
Expression SquareRoot(Expression x);
Expression Power(Expression x, double exponent);
// The nearest number in [low, high]. The bounds may be infinite.
Expression Clip(Expression x, double low, double high);
Expression AtLeast(Expression x, double low);
Expression AtMost(Expression x, double high);
Expression Activate(Expression x, ActivationAttributes::Kind kind);
Expression Softmax(Expression x);

// Reduce the last axis to extent 1. If x has one axis, they return x itself.
Expression SumOfRows(Expression x);
Expression MaximumOfRows(Expression x);
// Sums along `axes` and keeps them with extent 1. If `axes` is empty, sums along all axes, the
// batch's included.
Expression SumOver(Expression x, const std::vector<int>& axes);
// The sum, or the mean, of each example: (None, ...) -> (None).
Expression SumOfExamples(Expression x);
Expression MeanOfExamples(Expression x);
// The mean of all of x, repeated for each example of `like`: -> (None).
Expression RepeatForExamples(Expression x, Expression like);

}  // namespace shoal
