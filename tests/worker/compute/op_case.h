#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/model/graph.h"
#include "common/model/training_graph.h"
#include "tests/common/loss/loss_of.h"

namespace shoal {

// A small model around an op under test, and values for it, drawn by a seed. What goes into the op
// are variables, so that all its gradients are seen as they are; shapes have no batch extent.
// Something that does not fit ends the test program with the error.
class OpCase {
 public:
  // `small`: few enough elements for finite differences. With another type, all nodes are of a
  // layer that computes in it, values are such that it has them, and what goes into the op under
  // test and comes out of it is neither a variable nor the prediction, which are float32 always.
  OpCase(uint64_t seed, bool small, ComputeDtype type = ComputeDtype::kFloat32)
      : random_(seed), small_(small), type_(type) {}

  // A whole number from `least` to `most`; of a small case at most 2 more than the least.
  int64_t Pick(int64_t least, int64_t most);
  bool Flip() { return random_() % 2 == 0; }

  enum class Fill {
    kNormal,
    kPositive,  // 0.1 and more
    kFar,       // normal, far from 0 but for the first element
  };
  // A variable.
  ValueId Tensor(Shape shape, Fill fill = Fill::kNormal, Regularizer regularizer = {});
  // A variable of a layer that sums up `terms` products: the sums are about as large as what goes
  // in, whatever the number of layers.
  ValueId Kernel(Shape shape, int64_t terms);
  // A moving average, whose gradient is what SetSample says.
  ValueId MovingAverage(Shape shape, Fill fill);
  void SetSample(ValueId average, ValueId sample) { graph_.SetSample(average, sample); }
  // An image [B, H, W, C], row-major or, half of the time, left by a convolution that changes no
  // bit of it: on a backend with layouts of its own it comes in one of those.
  ValueId Image(const Shape& shape);
  Shape ImageShape();
  // Inputs of the model, which have no gradient: any values, and whole numbers from 0 to
  // `classes` - 1.
  ValueId Input(Shape shape, Fill fill);
  ValueId ClassIds(Shape shape, int64_t classes);

  std::vector<ValueId> AddNode(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  ValueId Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
    return AddNode(std::move(op), std::move(inputs))[0];
  }
  const Shape& shape(ValueId value) const { return graph_.value(value).shape; }

  // What the case is about: the output of the model. The loss is a mean squared error.
  void SetOutput(ValueId output);
  // With a loss of its own, and a target for it.
  void SetLoss(ValueId prediction, std::shared_ptr<const Loss> loss, std::vector<float> target);
  // Has examples count by weights.
  void Weigh() { weighted_ = true; }

  // When all is there:
  TrainingGraph BuildTraining();
  // By variable, and by input of the training graph.
  const std::vector<std::vector<float>>& variables() const { return variables_; }
  const std::vector<std::vector<float>>& inputs() const { return inputs_; }

 private:
  // The same numbers, as a node of `type` gives them.
  ValueId AddIdentity(ValueId value, ComputeDtype type);
  ValueId AddVariable(Variable variable, Fill fill);
  std::vector<float> Random(const Shape& shape, Fill fill);

  std::mt19937_64 random_;
  const bool small_;
  const ComputeDtype type_;
  std::set<float>
      drawn_;  // of a small case, in which no two values are as near as a difference goes
  Graph graph_;
  std::shared_ptr<const Loss> loss_ = LossOf("MeanSquaredError");
  std::vector<float> target_;  // empty: random
  bool weighted_ = false;
  std::vector<std::vector<float>> variables_;
  std::vector<std::vector<float>> inputs_;
};

// What the conformance suite runs: a case for every op, each with the error that it allows,
// relative to the largest value of a tensor.
struct NamedOpCase {
  std::string name;
  void (*build)(OpCase& test_case);
  double bound = 2e-5;
  // Rounding may decide on which side of a jump a gradient is: draws near one are skipped
  // (jumps.h).
  bool jumps_inside = false;
};
std::vector<NamedOpCase> OpCases();
// Chains and blocks of ops as models have them, whose layouts differ on a backend with layouts of
// its own.
std::vector<NamedOpCase> OpBlockCases();
inline void PrintTo(const NamedOpCase& named, std::ostream* out) { *out << named.name; }

}  // namespace shoal
