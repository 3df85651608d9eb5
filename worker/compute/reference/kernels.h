#pragma once

#include <map>
#include <string>
#include <vector>

#include "common/base/shape.h"
#include "common/model/op.h"
#include "worker/compute/program/run_context.h"

namespace shoal::reference {

// A row-major tensor.
template <typename Element>
struct View {
  Element* data = nullptr;
  Shape shape = {};

  int64_t size() const { return ElementCount(shape); }
  // The product of all axes except the last, and the last.
  int64_t rows() const { return shape.back() == 0 ? 0 : size() / shape.back(); }
  int64_t columns() const { return shape.back(); }
};

// The arguments of a kernel.
struct Arguments {
  const Op& op;
  std::vector<View<const double>> inputs = {};  // in the order of the op's comment;
                                                // unread inputs have no data
  std::vector<View<double>> outputs = {};       // all zero
  bool training = false;                        // whether in training mode
  RunContext context = {};

  // The output of an op with a single one.
  const View<double>& output() const { return outputs[0]; }
};

// Computes an op by plain loops that follow its definition: the meaning of the op, slow and
// obvious. In double, so that the same functions serve finite differences.
using KernelFunction = void (*)(const Arguments& arguments);

// Each is defined in the file of its op's family.
#define KERNEL(TYPE) void TYPE(const Arguments& arguments);
#include "worker/compute/reference/kernel_list.inc"
#undef KERNEL

// All kernels, by Op::type().
const std::map<std::string, KernelFunction>& Kernels();

}  // namespace shoal::reference
