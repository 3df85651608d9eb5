#include <cblas.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/compute/cpu/activation.h"
#include "worker/compute/cpu/cpu_program_builder.h"

namespace shoal::cpu {
namespace {

using dnnl::memory;

memory::desc Matrix(int64_t rows, int64_t columns, memory::format_tag order,
                    ComputeDtype type = ComputeDtype::kFloat32) {
  return {{rows, columns}, CpuProgramBuilder::DataTypeOf(type), order};
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

// A matrix and its layout.
struct MatrixTensor {
  TensorId tensor;
  memory::desc desc;
};
// Appends c = a b + bias by oneDNN. `bias` may be null.
void AddProduct(const MatrixTensor& a, const MatrixTensor& b, const MatrixTensor* bias,
                const MatrixTensor& c, CpuProgramBuilder& program) {
  const dnnl::matmul::primitive_desc pd(
      {a.desc, b.desc, bias == nullptr ? memory::desc() : bias->desc, c.desc},
      CpuProgramBuilder::Attributes(), program.engine());
  std::vector<CpuProgramBuilder::Argument> arguments = {{DNNL_ARG_SRC, a.tensor, a.desc},
                                                        {DNNL_ARG_WEIGHTS, b.tensor, b.desc},
                                                        {DNNL_ARG_DST, c.tensor, c.desc}};
  if (bias != nullptr) arguments.push_back({DNNL_ARG_BIAS, bias->tensor, bias->desc});
  program.AddPrimitive(dnnl::matmul(pd), pd.scratchpad_desc(), std::move(arguments));
}

}  // namespace

absl::Status Dense(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [m, k] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[0]));
  const int64_t n = builder.shape(node.inputs[1])[1];
  const bool bias = node.inputs.size() == 3;
  const bool onednn = program.prefer_onednn_matmul(m * n * k);
  const ComputeDtype type = onednn ? program.stored_dtype(node) : ComputeDtype::kFloat32;
  const TensorId x = program.RowMajor(node.inputs[0], type);
  const TensorId kernel = program.RowMajor(node.inputs[1], type);
  const TensorId y = builder.Output(node.outputs[0], type);
  const int64_t y_bytes = m * n * SizeOf(type);
  if (!onednn) {
    const BlasKernel::Product product = {.bias = bias, .m = m, .n = n, .k = k};
    std::vector<TensorId> tensors = {x, kernel};
    if (bias) tensors.push_back(program.RowMajor(node.inputs[2]));
    tensors.push_back(y);
    builder.AddStep(std::make_unique<BlasKernel>(product), std::move(tensors));
    AddFusedRelu(node, y, y_bytes, program);
    return absl::OkStatus();
  }
  MatrixTensor bias_row;
  if (bias) bias_row = {program.RowMajor(node.inputs[2]), Matrix(1, n, memory::format_tag::ab)};
  AddProduct({x, Matrix(m, k, memory::format_tag::ab, type)},
             {kernel, Matrix(k, n, memory::format_tag::ab, type)}, bias ? &bias_row : nullptr,
             {y, Matrix(m, n, memory::format_tag::ab, type)}, program);
  AddFusedRelu(node, y, y_bytes, program);
  return absl::OkStatus();
}

absl::Status DenseBackwardData(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [m, n] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[0]));
  const int64_t k = builder.shape(node.inputs[1])[0];
  const bool onednn = program.prefer_onednn_matmul(m * n * k);
  const ComputeDtype type = onednn ? program.stored_dtype(node) : ComputeDtype::kFloat32;
  const TensorId dy = program.RowMajor(node.inputs[0], type);
  const TensorId kernel = program.RowMajor(node.inputs[1], type);
  const TensorId dx = builder.Output(node.outputs[0], type);
  if (!onednn) {
    const BlasKernel::Product product = {.transpose_b = true, .m = m, .n = k, .k = n};
    builder.AddStep(std::make_unique<BlasKernel>(product), {dy, kernel, dx});
    return absl::OkStatus();
  }
  // The kernel as the transpose of [K, N].
  AddProduct({dy, Matrix(m, n, memory::format_tag::ab, type)},
             {kernel, Matrix(n, k, memory::format_tag::ba, type)}, nullptr,
             {dx, Matrix(m, k, memory::format_tag::ab, type)}, program);
  return absl::OkStatus();
}

absl::Status DenseBackwardWeights(const Node& node, CpuProgramBuilder& program) {
  ProgramBuilder& builder = program.builder();
  const auto [m, k] = CpuProgramBuilder::ExtentsOf(builder.shape(node.inputs[0]));
  const int64_t n = builder.shape(node.inputs[1]).back();
  const bool onednn = program.prefer_onednn_matmul(m * n * k);
  const ComputeDtype type = onednn ? node.compute_dtype : ComputeDtype::kFloat32;
  const TensorId x = program.RowMajor(node.inputs[0], type);
  const TensorId dy = program.RowMajor(node.inputs[1], type);
  const TensorId output = builder.Output(node.outputs[0]);
  if (type == ComputeDtype::kBfloat16) {
    AddProduct({x, Matrix(k, m, memory::format_tag::ba, type)},
               {dy, Matrix(m, n, memory::format_tag::ab, type)}, nullptr,
               {output, Matrix(k, n, memory::format_tag::ab)}, program);
  } else if (onednn) {
    builder.AddStep(std::make_unique<TransposedProductKernel>(m, k, n), {x, dy, output});
  } else {
    const BlasKernel::Product product = {.transpose_a = true, .m = k, .n = n, .k = m};
    builder.AddStep(std::make_unique<BlasKernel>(product), {x, dy, output});
  }
  return absl::OkStatus();
}

}  // namespace shoal::cpu
