#include "worker/compute/cuda/pointwise_convolutions.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "common/base/status_macros.h"

namespace shoal::cuda {
namespace {

using Pass = ConvolutionGraph::Pass;

// A product that is given the tensors of a graph: image, filter and result come first, or the
// gradients of these, in that order; then a bias, which only a forward pass has, and which lies
// before the result of it.
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

class PointwiseConvolutions : public Convolutions {
 public:
  PointwiseConvolutions(MatrixProducts* products, std::unique_ptr<Convolutions> others,
                        ConvolutionTimer measure)
      : products_(*products), others_(std::move(others)), measure_(std::move(measure)) {}

  absl::StatusOr<Made> Make(const ConvolutionGraph& graph, bool trains,
                            const NodeName& node) override {
    const std::optional<MatrixProduct> product = ProductOf(graph);
    if (!product.has_value()) return others_->Make(graph, trains, node);
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = products_.Make(*product, node);
    if (absl::IsUnimplemented(kernel.status())) return others_->Make(graph, trains, node);
    SHOAL_RETURN_IF_ERROR(kernel.status());
    Made as_product = {.kernel = std::make_unique<PointwiseKernel>(graph.pass, *std::move(kernel)),
                       .workspace_bytes = products_.workspace_bytes()};
    if (!trains || measure_ == nullptr) return as_product;
    absl::StatusOr<Made> other = others_->Make(graph, trains, node);
    if (absl::IsUnimplemented(other.status())) return as_product;
    SHOAL_RETURN_IF_ERROR(other.status());
    return IsFaster(graph, *other, as_product) ? *std::move(other) : std::move(as_product);
  }

 private:
  // What cannot be measured, as there is no memory for it, is not.
  bool IsFaster(const ConvolutionGraph& graph, const Made& one, const Made& other) const {
    const absl::StatusOr<double> time = measure_(graph, one.workspace_bytes, *one.kernel);
    const absl::StatusOr<double> others = measure_(graph, other.workspace_bytes, *other.kernel);
    return time.ok() && others.ok() && *time < *others;
  }

  MatrixProducts& products_;
  const std::unique_ptr<Convolutions> others_;
  const ConvolutionTimer measure_;
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

std::unique_ptr<Convolutions> CreatePointwiseConvolutions(MatrixProducts* products,
                                                          std::unique_ptr<Convolutions> others,
                                                          ConvolutionTimer measure) {
  return std::make_unique<PointwiseConvolutions>(products, std::move(others), std::move(measure));
}

}  // namespace shoal::cuda
