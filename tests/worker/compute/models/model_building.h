#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/graph.h"
#include "common/model/ops/activation.h"
#include "common/model/ops/dropout.h"
#include "common/model/ops/pad.h"
#include "common/model/ops/pool2d.h"

namespace shoal {

// Builds Sequential-like graphs in one line each, for tests and benchmarks. An invalid step ends
// the test program with the error.
class ModelBuilding {
 public:
  // One input of the given shape, kBatch first.
  explicit ModelBuilding(Shape input);

  ModelBuilding& Dense(int64_t units, bool bias = true);
  ModelBuilding& Conv2D(int64_t filters, Window window, int64_t groups = 1, bool bias = true);
  ModelBuilding& DepthwiseConv2D(Window window);
  ModelBuilding& BatchNormalization(bool frozen = false);
  ModelBuilding& Activation(ActivationAttributes attributes);
  ModelBuilding& Relu() { return Activation({}); }
  ModelBuilding& Pad(Margins margins);
  ModelBuilding& Pool2D(Pool2DOp::Kind kind, Window window);
  ModelBuilding& GlobalAveragePool2D(bool keep_dims = false);
  ModelBuilding& Flatten();
  ModelBuilding& Dropout(double rate, DropoutGroups groups = {});
  ModelBuilding& Softmax();
  ModelBuilding& Rescale(std::vector<double> scale, std::vector<double> offset);
  // Adds an earlier value of the same shape.
  ModelBuilding& Add(ValueId other);

  // The following steps belong to layers that compute in this type.
  ModelBuilding& ComputeIn(ComputeDtype type) {
    type_ = type;
    return *this;
  }

  // Returns the value of the last step.
  ValueId current() const { return current_; }
  const Shape& shape() const { return graph_.value(current_).shape; }
  // Continues from an earlier value.
  ModelBuilding& From(ValueId value);
  Graph Build();

 private:
  void Append(std::shared_ptr<const Op> op, std::vector<ValueId> inputs);
  ValueId AddVariable(const std::string& name, Shape shape);
  std::string NextLayer(const std::string& type);

  Graph graph_;
  ValueId current_;
  ComputeDtype type_ = ComputeDtype::kFloat32;
  int layers_ = 0;
};

// Conv 32 3x3, pool, Conv 64 3x3, pool, Dense 128, Dense 10 over 28x28x1; ReLU between; logits.
Graph FashionCnn();
// Three Dense layers of `units`, then 10 logits, over 28x28x1.
Graph FashionMlp(int64_t units);

}  // namespace shoal
