#include "worker/compute/cuda/ops/pointwise_convolutions.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace shoal::cuda {
namespace {

using Pass = ConvolutionGraph::Pass;

// A product that takes the tensors of a graph: first image, filter and result, or their gradients,
// in that order; then a bias. Only a forward pass has a bias; it comes before the result.
class PointwiseKernel : public Kernel {
 public:
  PointwiseKernel(Pass pass, std::unique_ptr<Kernel> product)
      : pass_(pass), product_(std::move(product)) {}

  absl::Status Run(const RunContext* context, std::span<void* const> tensors) override {
    void* const workspace = tensors.back();
    switch (pass_) {
      case Pass::kForward:
        break;
      case Pass::kBackwardData:
        return product_->Run(context, std::array{tensors[2], tensors[1], tensors[0], workspace});
      case Pass::kBackwardFilter:
        return product_->Run(context, std::array{tensors[2], tensors[0], tensors[1], workspace});
    }
    return product_->Run(context, tensors);
  }

 private:
  const Pass pass_;
  const std::unique_ptr<Kernel> product_;
};

// One of the two alternatives.
struct PointwisePlan {
  static constexpr std::string_view kProduct = "product";
  static constexpr std::string_view kConvolution = "convolution";

  std::string_view way;
  Convolutions::Made made;

  std::string choice() const { return std::string(way); }
};

class PointwiseConvolutions : public Convolutions {
 public:
  explicit PointwiseConvolutions(PointwiseOptions options) : options_(std::move(options)) {}

  absl::StatusOr<Made> Make(const ConvolutionGraph& graph, bool trains,
                            const NodeName& node) override {
    const std::optional<MatrixProduct> product = ProductOf(graph);
    if (!product.has_value()) return options_.others->Make(graph, trains, node);
    AlgorithmOffer<PointwisePlan> offer = {.work = GraphText(graph)};
    AlgorithmTuner* const tuner = trains ? options_.tuner : nullptr;
    if (tuner != nullptr) {
      SHOAL_ASSIGN_OR_RETURN(const std::string others, options_.others->Library());
      offer.libraries = absl::StrCat(options_.products->Library(), " or ", others);
    }
    offer.make = [&](const std::string& choice) {
      return MakePlan(choice, graph, *product, trains, node);
    };
    offer.suggest = [&](size_t max) { return Suggest(max, graph, *product, trains, node); };
    offer.measure = [&](PointwisePlan& plan) {
      return options_.measure(TrialTensorsOf(graph), plan.made.workspace_bytes, *plan.made.kernel);
    };
    SHOAL_ASSIGN_OR_RETURN(PointwisePlan plan, ChooseAlgorithm(tuner, offer));
    return std::move(plan.made);
  }

  absl::StatusOr<std::string> Library() override { return options_.others->Library(); }

 private:
  absl::StatusOr<PointwisePlan> MakePlan(std::string_view choice, const ConvolutionGraph& graph,
                                         const MatrixProduct& product, bool trains,
                                         const NodeName& node) {
    if (choice == PointwisePlan::kConvolution) {
      SHOAL_ASSIGN_OR_RETURN(Made made, options_.others->Make(graph, trains, node));
      return PointwisePlan{PointwisePlan::kConvolution, std::move(made)};
    }
    if (choice != PointwisePlan::kProduct)
      return absl::InvalidArgumentError(
          absl::StrCat("unknown way to compute it: ", std::string(choice)));
    SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                           options_.products->Make(product, trains, node));
    return PointwisePlan{
        PointwisePlan::kProduct,
        {.kernel = std::make_unique<PointwiseKernel>(graph.pass, std::move(kernel)),
         .workspace_bytes = options_.products->workspace_bytes()}};
  }

  // The product comes first. An alternative that is unsupported is left out.
  absl::StatusOr<std::vector<PointwisePlan>> Suggest(size_t max, const ConvolutionGraph& graph,
                                                     const MatrixProduct& product, bool trains,
                                                     const NodeName& node) {
    std::vector<PointwisePlan> plans;
    absl::Status failed;
    for (const std::string_view way : {PointwisePlan::kProduct, PointwisePlan::kConvolution}) {
      if (plans.size() == max) break;
      absl::StatusOr<PointwisePlan> plan = MakePlan(way, graph, product, trains, node);
      if (plan.ok()) {
        plans.push_back(*std::move(plan));
      } else if (absl::IsUnimplemented(plan.status())) {
        failed = plan.status();
      } else {
        return plan.status();
      }
    }
    if (plans.empty()) return failed;
    return plans;
  }

  const PointwiseOptions options_;
};

bool IsOfSinglePixels(const ConvolutionGraph& graph) {
  const auto all = [](const std::array<int64_t, 2>& axes, int64_t value) {
    return axes[0] == value && axes[1] == value;
  };
  const auto& [filters, channels, height, width] = graph.filter.dims;
  return height == 1 && width == 1 && channels == graph.x.dims[1] && all(graph.strides, 1) &&
         all(graph.padding_before, 0) && all(graph.padding_after, 0);
}

}  // namespace

std::optional<MatrixProduct> ProductOf(const ConvolutionGraph& graph) {
  if (!IsOfSinglePixels(graph)) return std::nullopt;
  const bool cuts_off = std::any_of(
      graph.after.begin(), graph.after.end(),
      [](const Pointwise& pointwise) { return pointwise.kind == Pointwise::Kind::kRelu; });
  if (cuts_off) return std::nullopt;
  const ComputeDtype type = graph.x.type;
  MatrixProduct product = {.operands = type, .result = type};
  const int64_t pixels = graph.x.dims[0] * graph.x.dims[2] * graph.x.dims[3];
  const int64_t channels = graph.x.dims[1], filters = graph.filter.dims[0];
  switch (graph.pass) {
    case Pass::kForward:  // image [pixels, channels], filter [filters, channels]
      product.transpose_b = true;
      product.bias = !graph.after.empty();
      product.m = pixels, product.n = filters, product.k = channels;
      break;
    case Pass::kBackwardData:
      product.m = pixels, product.n = channels, product.k = filters;
      break;
    case Pass::kBackwardFilter:
      product.transpose_a = true;
      product.m = filters, product.n = channels, product.k = pixels;
      break;
  }
  return product;
}

std::unique_ptr<Convolutions> CreatePointwiseConvolutions(PointwiseOptions options) {
  return std::make_unique<PointwiseConvolutions>(std::move(options));
}

}  // namespace shoal::cuda
