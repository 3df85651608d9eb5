#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/model/graph.h"
#include "common/model/training/training_graph.h"
#include "tests/common/loss/loss_of.h"

namespace shoal {

// A small model around an op under test, with values drawn from a seed. The inputs of the op are
// variables, so that the test sees all its gradients unchanged. Shapes have no batch extent.
// Invalid calls end the test program with the error.
class OpCase {
 public:
  // `small` limits the number of elements for finite differences. With another `type`, all nodes
  // belong to a layer that computes in it, and it can represent all values. The op's inputs are
  // then not variables and its output is not the prediction, because those are always float32.
  OpCase(uint64_t seed, bool small, ComputeDtype type = ComputeDtype::kFloat32)
      : random_(seed), small_(small), type_(type) {}

  // Draws an integer from `least` to `most`. In a small case it is at most `least` + 2.
  int64_t Pick(int64_t least, int64_t most);
  bool Flip() { return random_() % 2 == 0; }

  enum class Fill {
    kNormal,
    kPositive,  // at least 0.1
    kFar,       // normal, far from 0 except the first element
  };
  // Adds a variable.
  ValueId Tensor(Shape shape, Fill fill = Fill::kNormal, Regularizer regularizer = {});
  // Adds a variable of a layer that sums `terms` products. The sums are about as large as the
  // inputs, for any number of layers.
  ValueId Kernel(Shape shape, int64_t terms);
  // Adds a moving average. SetSample sets its gradient.
  ValueId MovingAverage(Shape shape, Fill fill);
  void SetSample(ValueId average, ValueId sample) { graph_.SetSample(average, sample); }
  // Adds an image [B, H, W, C]. It is row-major or, half of the time, the output of a convolution
  // that changes no bit of it. A backend with its own layouts then stores it in one of them.
  ValueId Image(const Shape& shape);
  Shape ImageShape();
  // Add inputs of the model, which have no gradient: any values, and integers from 0 to `classes` -
  // 1.
  ValueId Input(Shape shape, Fill fill);
  ValueId ClassIds(Shape shape, int64_t classes);

  std::vector<ValueId> AddNode(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  ValueId Add(std::shared_ptr<const Op> op, std::vector<ValueId> inputs) {
    return AddNode(std::move(op), std::move(inputs))[0];
  }
  const Shape& shape(ValueId value) const { return graph_.value(value).shape; }

  // Sets the result under test, the output of the model. The loss is a mean squared error.
  void SetOutput(ValueId output);
  // The same with another loss and its target.
  void SetLoss(ValueId prediction, std::shared_ptr<const Loss> loss, std::vector<float> target);
  // Gives the examples weights.
  void Weigh() { weighted_ = true; }

  // Call it after all functions above.
  TrainingGraph BuildTraining();
  // By variable, and by input of the training graph.
  const std::vector<std::vector<float>>& variables() const { return variables_; }
  const std::vector<std::vector<float>>& inputs() const { return inputs_; }

  // Puts not-a-number and infinities into `count` random places of tensors that may hold any
  // number: variables, and inputs that Input added. Returns the places, for people. Call it after
  // all other functions.
  std::string PutNonFinite(int count);

 private:
  // Adds a node of `type` that returns the same numbers.
  ValueId AddIdentity(ValueId value, ComputeDtype type);
  ValueId AddVariable(Variable variable, Fill fill);
  ValueId AddInput(Shape shape, Fill fill);
  std::vector<float> Random(const Shape& shape, Fill fill);

  std::mt19937_64 random_;
  const bool small_;
  const ComputeDtype type_;
  std::set<float> drawn_;  // of a small case: their distances exceed a difference step
  Graph graph_;
  std::shared_ptr<const Loss> loss_ = LossOf("MeanSquaredError");
  std::vector<float> target_;  // empty: random
  bool weighted_ = false;
  std::vector<std::vector<float>> variables_;
  std::vector<std::vector<float>> inputs_;
  // Indices, for PutNonFinite.
  std::set<size_t> image_kernels_;  // variables that change no bit of an image
  std::set<size_t> number_inputs_;
};

// A case of the conformance suite, for one op. Its error bound is relative to the largest value of
// a tensor.
struct NamedOpCase {
  std::string name;
  void (*build)(OpCase& test_case);
  double bound = 2e-5;
  // Rounding may decide on which side of a jump a gradient is. The suite skips draws near a jump
  // (jumps.h).
  bool jumps_inside = false;
};
std::vector<NamedOpCase> OpCases();
// Returns a case for each fused op (plan/fused_ops.h): the ops of a model that it computes. They
// compute one by one where a backend has no kernel for the fused op.
std::vector<NamedOpCase> FusedOpCases();
// Returns chains and blocks of ops as in models. On a backend with its own layouts, their layouts
// differ.
std::vector<NamedOpCase> OpBlockCases();
inline void PrintTo(const NamedOpCase& named, std::ostream* out) { *out << named.name; }

}  // namespace shoal
