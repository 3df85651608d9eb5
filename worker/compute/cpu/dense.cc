#include <cblas.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/compute/cpu/activation.h"
#include "worker/compute/cpu/cpu_program.h"

namespace shoal::cpu {
namespace {

using dnnl::memory;

memory::desc Matrix(int64_t rows, int64_t columns, memory::format_tag order) {
  return {{rows, columns}, memory::data_type::f32, order};
}

// c [M, N] = op(a) op(b), row-major, by OpenBLAS. Used where OpenBLAS is faster. Tensors: (a, b, c)
// or, with a bias for every row, (a, b, bias, c).
class BlasKernel : public Kernel {
 public:
  struct Product {
    bool transpose_a = false, transpose_b = false, bias = false;
    int64_t m, n, k;
  };
  explicit BlasKernel(const Product& product) : p_(product) {}

  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    const auto* a = static_cast<const float*>(tensors[0]);
    const auto* b = static_cast<const float*>(tensors[1]);
    auto* c = static_cast<float*>(tensors.back());
    if (p_.bias) {
      const auto* bias = static_cast<const float*>(tensors[2]);
      for (int64_t row = 0; row < p_.m; ++row) std::copy_n(bias, p_.n, c + row * p_.n);
    }
    cblas_sgemm(CblasRowMajor, p_.transpose_a ? CblasTrans : CblasNoTrans,
                p_.transpose_b ? CblasTrans : CblasNoTrans, p_.m, p_.n, p_.k, 1.0f, a,
                p_.transpose_a ? p_.m : p_.k, b, p_.transpose_b ? p_.k : p_.n,
                p_.bias ? 1.0f : 0.0f, c, p_.n);
    return absl::OkStatus();
  }

 private:
  const Product p_;
};

// c [K, N] = aᵀ b for a [M, K], b [M, N], by oneDNN's sgemm. Tensors: (a, b, c).
class TransposedProductKernel : public Kernel {
 public:
  TransposedProductKernel(int64_t m, int64_t k, int64_t n) : m_(m), k_(k), n_(n) {}

  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    const dnnl_status_t status = dnnl_sgemm(
        'T', 'N', k_, n_, m_, 1.0f, static_cast<const float*>(tensors[0]), k_,
        static_cast<const float*>(tensors[1]), n_, 0.0f, static_cast<float*>(tensors[2]), n_);
    if (status == dnnl_success) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("oneDNN: dnnl_sgemm failed with status ", status));
  }

 private:
  const int64_t m_, k_, n_;
};

}  // namespace

absl::Status Dense(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto [m, k] = CpuProgram::ExtentsOf(builder.shape(node.inputs[0]));
  const int64_t n = builder.shape(node.inputs[1])[1];
  const bool bias = node.inputs.size() == 3;
  const TensorId x = program.RowMajor(node.inputs[0]);
  const TensorId kernel = program.RowMajor(node.inputs[1]);
  const TensorId y = builder.Output(node.outputs[0]);
  const int64_t y_bytes = m * n * static_cast<int64_t>(sizeof(float));
  if (!program.prefer_onednn_matmul(m * n * k)) {
    const BlasKernel::Product product = {.bias = bias, .m = m, .n = n, .k = k};
    std::vector<TensorId> tensors = {x, kernel};
    if (bias) tensors.push_back(program.RowMajor(node.inputs[2]));
    tensors.push_back(y);
    builder.AddStep(std::make_unique<BlasKernel>(product), std::move(tensors));
    AddFusedRelu(node, y, y_bytes, program);
    return absl::OkStatus();
  }
  const memory::desc x_desc = Matrix(m, k, memory::format_tag::ab);
  const memory::desc kernel_desc = Matrix(k, n, memory::format_tag::ab);
  const memory::desc y_desc = Matrix(m, n, memory::format_tag::ab);
  const memory::desc bias_desc = bias ? Matrix(1, n, memory::format_tag::ab) : memory::desc();
  const dnnl::matmul::primitive_desc pd({x_desc, kernel_desc, bias_desc, y_desc},
                                        CpuProgram::Attributes(), program.engine());
  std::vector<CpuProgram::Argument> arguments = {{DNNL_ARG_SRC, x, x_desc},
                                                 {DNNL_ARG_WEIGHTS, kernel, kernel_desc},
                                                 {DNNL_ARG_DST, y, y_desc}};
  if (bias) arguments.push_back({DNNL_ARG_BIAS, program.RowMajor(node.inputs[2]), bias_desc});
  program.AddPrimitive(dnnl::matmul(pd), pd.scratchpad_desc(), std::move(arguments));
  AddFusedRelu(node, y, y_bytes, program);
  return absl::OkStatus();
}

absl::Status DenseBackwardData(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto [m, n] = CpuProgram::ExtentsOf(builder.shape(node.inputs[0]));
  const int64_t k = builder.shape(node.inputs[1])[0];
  const TensorId dy = program.RowMajor(node.inputs[0]);
  const TensorId kernel = program.RowMajor(node.inputs[1]);
  const TensorId dx = builder.Output(node.outputs[0]);
  if (!program.prefer_onednn_matmul(m * n * k)) {
    const BlasKernel::Product product = {.transpose_b = true, .m = m, .n = k, .k = n};
    builder.AddStep(std::make_unique<BlasKernel>(product), {dy, kernel, dx});
    return absl::OkStatus();
  }
  const memory::desc dy_desc = Matrix(m, n, memory::format_tag::ab);
  const memory::desc kernel_desc = Matrix(n, k, memory::format_tag::ba);  // the transpose of [K, N]
  const memory::desc dx_desc = Matrix(m, k, memory::format_tag::ab);
  const dnnl::matmul::primitive_desc pd({dy_desc, kernel_desc, dx_desc}, CpuProgram::Attributes(),
                                        program.engine());
  program.AddPrimitive(dnnl::matmul(pd), pd.scratchpad_desc(),
                       {{DNNL_ARG_SRC, dy, dy_desc},
                        {DNNL_ARG_WEIGHTS, kernel, kernel_desc},
                        {DNNL_ARG_DST, dx, dx_desc}});
  return absl::OkStatus();
}

absl::Status DenseBackwardWeights(const Node& node, CpuProgram& program) {
  ProgramBuilder& builder = program.builder();
  const auto [m, k] = CpuProgram::ExtentsOf(builder.shape(node.inputs[0]));
  const int64_t n = builder.shape(node.inputs[1]).back();
  const TensorId x = program.RowMajor(node.inputs[0]);
  const TensorId dy = program.RowMajor(node.inputs[1]);
  const TensorId output = builder.Output(node.outputs[0]);
  if (program.prefer_onednn_matmul(m * n * k)) {
    builder.AddStep(std::make_unique<TransposedProductKernel>(m, k, n), {x, dy, output});
  } else {
    const BlasKernel::Product product = {.transpose_a = true, .m = k, .n = n, .k = m};
    builder.AddStep(std::make_unique<BlasKernel>(product), {x, dy, output});
  }
  return absl::OkStatus();
}

}  // namespace shoal::cpu
