#include "worker/compute/cuda/cublaslt/cublaslt_products.h"

#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/compute/cuda/cublaslt/cublaslt_library.h"
#include "worker/compute/cuda/tuning/run_timer.h"

namespace shoal::cuda {
namespace {

// NVIDIA's recommendation for Hopper; more than any algorithm needs on other GPUs.
constexpr int64_t kWorkspaceBytes = 32 << 20;
// Alignment of the workspace for cuBLASLt; a program's tensors have less.
constexpr uintptr_t kWorkspaceAlignment = 256;
// The guaranteed alignment of a program's tensors (PlanMemory, ModelLayout).
constexpr uint32_t kTensorAlignment = 64;

// Owns an object of cuBLASLt and frees it with its own function.
template <typename Pointer, typename Destroy>
class Owned {
 public:
  Owned(Pointer pointer, Destroy destroy) : pointer_(pointer), destroy_(destroy) {}
  Owned(Owned&& other)
      : pointer_(std::exchange(other.pointer_, nullptr)), destroy_(other.destroy_) {}
  ~Owned() {
    if (pointer_ != nullptr) destroy_(pointer_);
  }
  Pointer get() const { return pointer_; }

 private:
  Pointer pointer_;
  Destroy destroy_;
};
using Layout = Owned<cublasLtMatrixLayout_t, decltype(&::cublasLtMatrixLayoutDestroy)>;
using Description = Owned<cublasLtMatmulDesc_t, decltype(&::cublasLtMatmulDescDestroy)>;
using Preference = Owned<cublasLtMatmulPreference_t, decltype(&::cublasLtMatmulPreferenceDestroy)>;
using Handle = Owned<cublasLtHandle_t, decltype(&::cublasLtDestroy)>;

// cuBLASLt's matrices are column-major. A row-major matrix is its own transpose there, and c = a b
// becomes c' = b' a'. Hence cuBLASLt's first operand is b.
class CublasLtProduct : public Kernel {
 public:
  struct Parts {
    Description description;
    Layout first, second, result;
  };
  CublasLtProduct(const CublasLtLibrary* library, cublasLtHandle_t handle, const Stream* stream,
                  const NodeName& node, bool bias, Parts parts,
                  const cublasLtMatmulAlgo_t& algorithm)
      : library_(*library),
        handle_(handle),
        stream_(*stream),
        op_(node.op),
        layer_(node.layer),
        bias_(bias),
        parts_(std::move(parts)),
        algorithm_(algorithm) {}

  const cublasLtMatmulAlgo_t& algorithm() const { return algorithm_; }

  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    const NodeName node = {.op = op_, .layer = layer_};
    if (bias_) {
      SHOAL_RETURN_IF_ERROR(
          SHOAL_CUBLASLT(library_,
                         cublasLtMatmulDescSetAttribute(parts_.description.get(),
                                                        CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                        &tensors[2], sizeof(tensors[2])),
                         node));
    }
    const float one = 1, zero = 0;
    void* const c = tensors[tensors.size() - 2];
    const uintptr_t workspace =
        reinterpret_cast<uintptr_t>(tensors.back()) + kWorkspaceAlignment - 1;
    return SHOAL_CUBLASLT(
        library_,
        cublasLtMatmul(
            handle_, parts_.description.get(), &one, tensors[1], parts_.first.get(), tensors[0],
            parts_.second.get(), &zero, c, parts_.result.get(), c, parts_.result.get(), &algorithm_,
            reinterpret_cast<void*>(workspace / kWorkspaceAlignment * kWorkspaceAlignment),
            kWorkspaceBytes, stream_.get()),
        node);
  }

 private:
  const CublasLtLibrary& library_;
  const cublasLtHandle_t handle_;
  const Stream& stream_;
  const std::string op_, layer_;
  const bool bias_;
  const Parts parts_;
  const cublasLtMatmulAlgo_t algorithm_;
};

// The whole product in one line: two texts are equal exactly if the products are.
std::string ProductText(const MatrixProduct& product) {
  const auto side = [](int64_t rows, int64_t columns, bool transposed) {
    return absl::StrCat(" ", rows, "x", columns, transposed ? "'" : "");
  };
  return absl::StrCat("product ", NameOf(product.operands), " ", NameOf(product.result),
                      side(product.m, product.k, product.transpose_a),
                      side(product.k, product.n, product.transpose_b), product.bias ? " bias" : "");
}

// a, b, the bias if any, and c.
std::vector<TrialTensor> TrialTensorsOf(const MatrixProduct& product) {
  std::vector<TrialTensor> tensors = {{product.operands, product.m * product.k},
                                      {product.operands, product.k * product.n}};
  if (product.bias) tensors.push_back({product.result, product.n});
  tensors.push_back({product.result, product.m * product.n, /*written=*/true});
  return tensors;
}

// A product with its algorithm.
struct ProductPlan {
  std::unique_ptr<CublasLtProduct> kernel;
  std::string choice() const { return AlgorithmText(kernel->algorithm()); }
};

class CublasLtProducts : public MatrixProducts {
 public:
  CublasLtProducts(std::unique_ptr<const CublasLtLibrary> library, Handle handle,
                   CublasLtOptions options)
      : library_(std::move(library)), handle_(std::move(handle)), options_(options) {}

  absl::StatusOr<std::unique_ptr<Kernel>> Make(const MatrixProduct& product, bool trains,
                                               const NodeName& node) override {
    const AlgorithmOffer<ProductPlan> offer = {
        .libraries = Library(),
        .work = ProductText(product),
        .make = [&](const std::string& choice) { return MakeAgain(product, choice, node); },
        .suggest = [&](size_t max) { return Suggest(product, max, node); },
        .measure =
            [&](ProductPlan& plan) {
              return TryRun(*options_.stream, TrialTensorsOf(product), workspace_bytes(),
                            [&](std::span<void* const> tensors) {
                              return plan.kernel->Run(nullptr, tensors);
                            });
            }};
    SHOAL_ASSIGN_OR_RETURN(ProductPlan plan,
                           ChooseAlgorithm(trains ? options_.tuner : nullptr, offer));
    return std::move(plan.kernel);
  }

  std::string Library() const override { return library_->name(); }

  int64_t workspace_bytes() const override {
    return kWorkspaceBytes + static_cast<int64_t>(kWorkspaceAlignment);
  }

 private:
  // Returns the algorithms that cuBLASLt's heuristics expect to be fast, the best first.
  absl::StatusOr<std::vector<ProductPlan>> Suggest(const MatrixProduct& product, size_t max,
                                                   const NodeName& node) const {
    SHOAL_ASSIGN_OR_RETURN(const CublasLtProduct::Parts parts, NewParts(product, node));
    SHOAL_ASSIGN_OR_RETURN(const Preference preference, NewPreference(node));
    std::vector<cublasLtMatmulHeuristicResult_t> found(max);
    int count = 0;
    SHOAL_RETURN_IF_ERROR(SHOAL_CUBLASLT(
        *library_,
        cublasLtMatmulAlgoGetHeuristic(handle_.get(), parts.description.get(), parts.first.get(),
                                       parts.second.get(), parts.result.get(), parts.result.get(),
                                       preference.get(), static_cast<int>(max), found.data(),
                                       &count),
        node));
    std::vector<ProductPlan> plans;
    for (int i = 0; i < count; ++i) {
      if (found[i].state != CUBLAS_STATUS_SUCCESS) continue;
      SHOAL_ASSIGN_OR_RETURN(plans.emplace_back(), NewPlan(product, found[i].algo, node));
    }
    if (plans.empty()) {
      return absl::UnimplementedError(
          absl::StrCat("cuBLASLt names no algorithm for ", std::string(node.op), " in the layer ",
                       std::string(node.layer), ", a product of ", product.m, "x", product.k,
                       " and ", product.k, "x", product.n));
    }
    return plans;
  }

  // An error if this device or version lacks the algorithm, or it does not fit into the workspace.
  absl::StatusOr<ProductPlan> MakeAgain(const MatrixProduct& product, const std::string& choice,
                                        const NodeName& node) const {
    const std::optional<cublasLtMatmulAlgo_t> algorithm = ParseAlgorithm(choice);
    if (!algorithm.has_value()) return absl::InvalidArgumentError(choice + " is no algorithm");
    SHOAL_ASSIGN_OR_RETURN(const CublasLtProduct::Parts parts, NewParts(product, node));
    cublasLtMatmulHeuristicResult_t checked = {};
    SHOAL_RETURN_IF_ERROR(SHOAL_CUBLASLT(
        *library_,
        cublasLtMatmulAlgoCheck(handle_.get(), parts.description.get(), parts.first.get(),
                                parts.second.get(), parts.result.get(), parts.result.get(),
                                &*algorithm, &checked),
        node));
    if (checked.workspaceSize > kWorkspaceBytes) {
      return absl::ResourceExhaustedError("the algorithm needs a larger workspace");
    }
    return NewPlan(product, *algorithm, node);
  }

  absl::StatusOr<ProductPlan> NewPlan(const MatrixProduct& product,
                                      const cublasLtMatmulAlgo_t& algorithm,
                                      const NodeName& node) const {
    SHOAL_ASSIGN_OR_RETURN(CublasLtProduct::Parts parts, NewParts(product, node));
    return ProductPlan{std::make_unique<CublasLtProduct>(library_.get(), handle_.get(),
                                                         options_.stream, node, product.bias,
                                                         std::move(parts), algorithm)};
  }

  absl::StatusOr<CublasLtProduct::Parts> NewParts(const MatrixProduct& product,
                                                  const NodeName& node) const {
    SHOAL_ASSIGN_OR_RETURN(Description description, Describe(product, node));
    const cudaDataType_t operands = TypeOf(product.operands);
    SHOAL_ASSIGN_OR_RETURN(Layout first, product.transpose_b
                                             ? NewLayout(operands, product.k, product.n, node)
                                             : NewLayout(operands, product.n, product.k, node));
    SHOAL_ASSIGN_OR_RETURN(Layout second, product.transpose_a
                                              ? NewLayout(operands, product.m, product.k, node)
                                              : NewLayout(operands, product.k, product.m, node));
    SHOAL_ASSIGN_OR_RETURN(Layout result,
                           NewLayout(TypeOf(product.result), product.n, product.m, node));
    return CublasLtProduct::Parts{std::move(description), std::move(first), std::move(second),
                                  std::move(result)};
  }

  absl::StatusOr<Description> Describe(const MatrixProduct& product, const NodeName& node) const {
    cublasLtMatmulDesc_t created = nullptr;
    SHOAL_RETURN_IF_ERROR(
        SHOAL_CUBLASLT(*library_,
                       cublasLtMatmulDescCreate(
                           &created, ComputeTypeOf(product.operands, options_.tf32), CUDA_R_32F),
                       node));
    Description description(created, library_->cublasLtMatmulDescDestroy);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      return SHOAL_CUBLASLT(
          *library_, cublasLtMatmulDescSetAttribute(created, attribute, &value, sizeof(value)),
          node);
    };
    const auto operation = [](bool transposed) { return transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
    SHOAL_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, operation(product.transpose_b)));
    SHOAL_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSB, operation(product.transpose_a)));
    if (product.bias) {
      SHOAL_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS));
      // The heuristics look only at the alignment, which all tensors share. Run sets the real
      // address.
      SHOAL_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                reinterpret_cast<const void*>(uintptr_t{kTensorAlignment})));
    }
    return description;
  }

  static cudaDataType_t TypeOf(ComputeDtype type) {
    switch (type) {
      case ComputeDtype::kBfloat16:
        return CUDA_R_16BF;
      case ComputeDtype::kFloat16:
        return CUDA_R_16F;
      case ComputeDtype::kFloat32:
        break;
    }
    return CUDA_R_32F;
  }

  // Column-major, without gaps.
  absl::StatusOr<Layout> NewLayout(cudaDataType_t type, int64_t rows, int64_t columns,
                                   const NodeName& node) const {
    cublasLtMatrixLayout_t created = nullptr;
    SHOAL_RETURN_IF_ERROR(
        SHOAL_CUBLASLT(*library_,
                       cublasLtMatrixLayoutCreate(&created, type, static_cast<uint64_t>(rows),
                                                  static_cast<uint64_t>(columns), rows),
                       node));
    return Layout(created, library_->cublasLtMatrixLayoutDestroy);
  }

  absl::StatusOr<Preference> NewPreference(const NodeName& node) const {
    cublasLtMatmulPreference_t created = nullptr;
    SHOAL_RETURN_IF_ERROR(
        SHOAL_CUBLASLT(*library_, cublasLtMatmulPreferenceCreate(&created), node));
    Preference preference(created, library_->cublasLtMatmulPreferenceDestroy);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
      return SHOAL_CUBLASLT(
          *library_,
          cublasLtMatmulPreferenceSetAttribute(created, attribute, &value, sizeof(value)), node);
    };
    SHOAL_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes}));
    // Partial sums are added up in float32, too.
    SHOAL_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                              uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      SHOAL_RETURN_IF_ERROR(set(attribute, kTensorAlignment));
    }
    return preference;
  }

  const std::unique_ptr<const CublasLtLibrary> library_;
  const Handle handle_;
  const CublasLtOptions options_;
};

}  // namespace

std::string AlgorithmText(const cublasLtMatmulAlgo_t& algorithm) {
  std::string text;
  for (const uint64_t number : algorithm.data) {
    absl::StrAppend(&text, absl::Hex(number, absl::kZeroPad16));
  }
  return text;
}

std::optional<cublasLtMatmulAlgo_t> ParseAlgorithm(const std::string& text) {
  constexpr size_t kDigits = 16;
  cublasLtMatmulAlgo_t algorithm = {};
  if (text.size() != kDigits * std::size(algorithm.data)) return std::nullopt;
  for (size_t i = 0; i < std::size(algorithm.data); ++i) {
    if (!absl::SimpleHexAtoi(text.substr(i * kDigits, kDigits), &algorithm.data[i])) {
      return std::nullopt;
    }
  }
  return algorithm;
}

cublasComputeType_t ComputeTypeOf(ComputeDtype operands, bool tf32) {
  return tf32 && operands == ComputeDtype::kFloat32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                    : CUBLAS_COMPUTE_32F;
}

absl::StatusOr<std::unique_ptr<MatrixProducts>> CreateCublasLtProducts(CublasLtOptions options) {
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<const CublasLtLibrary> library, CublasLtLibrary::Load());
  cublasLtHandle_t created = nullptr;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUBLASLT(*library, cublasLtCreate(&created)));
  Handle handle(created, library->cublasLtDestroy);
  return std::make_unique<CublasLtProducts>(std::move(library), std::move(handle), options);
}

}  // namespace shoal::cuda
