#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/shape.h"
#include "common/model/graph.h"

namespace shoal::reference {

// A row-major tensor.
template <typename Scalar>
struct View {
  Scalar* data = nullptr;
  Shape shape = {};

  int64_t size() const { return ElementCount(shape); }
  // All axes but the last, and the last.
  int64_t rows() const { return shape.back() == 0 ? 0 : size() / shape.back(); }
  int64_t columns() const { return shape.back(); }
};

// What a kernel is called with.
template <typename Scalar>
struct Arguments {
  const Op& op;
  std::vector<View<const Scalar>> inputs = {};  // in the order that common/model/ops.h names
  View<Scalar> output = {};
  bool dropout = false;  // whether dropout layers drop
  uint64_t job_seed = 0;
  uint64_t step = 0;
};

// Computes an op by plain loops that follow its definition: the meaning of the op, slow and
// obvious. Scalar is float (the "reference" backend) or double (for finite differences); sums are
// in double.
template <typename Scalar>
using KernelFunction = void (*)(const Arguments<Scalar>& arguments);

// By Op::type().
template <typename Scalar>
using KernelTable = std::map<std::string, KernelFunction<Scalar>>;

// Every op of common/model/ops.h.
template <typename Scalar>
KernelTable<Scalar> AllKernels();

// Each adds its family; for float and double.
template <typename Scalar>
void AddDenseKernels(KernelTable<Scalar>& table);
template <typename Scalar>
void AddConv2DKernels(KernelTable<Scalar>& table);
template <typename Scalar>
void AddPool2DKernels(KernelTable<Scalar>& table);
template <typename Scalar>
void AddElementwiseKernels(KernelTable<Scalar>& table);
template <typename Scalar>
void AddLossKernels(KernelTable<Scalar>& table);

}  // namespace shoal::reference
