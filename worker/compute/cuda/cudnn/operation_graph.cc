#include "worker/compute/cuda/cudnn/operation_graph.h"

#include <array>
#include <map>
#include <utility>

#include "common/base/status_macros.h"

namespace shoal::cuda {
namespace {

// The alignment of everything in memory: pieces of the arena, inputs and variables.
constexpr int64_t kAlignmentBytes = 16;

// The attributes of the operation of a pass.
struct PassAttributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t x, filter, y, convolution, alpha, beta;
};

const PassAttributes& AttributesOf(ConvolutionGraph::Pass pass) {
  static constexpr PassAttributes kForward = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
  static constexpr PassAttributes kBackwardData = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
  static constexpr PassAttributes kBackwardFilter = {
      CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  switch (pass) {
    case ConvolutionGraph::Pass::kBackwardData:
      return kBackwardData;
    case ConvolutionGraph::Pass::kBackwardFilter:
      return kBackwardFilter;
    case ConvolutionGraph::Pass::kForward:
      break;
  }
  return kForward;
}

class Building {
 public:
  Building(const CudnnLibrary& library, const NodeName& node) : library_(library), node_(node) {}

  absl::StatusOr<std::vector<Descriptor>> Build(const ConvolutionGraph& graph) {
    SHOAL_RETURN_IF_ERROR(AddTensors(graph));
    SHOAL_RETURN_IF_ERROR(AddConvolution(graph));
    const GraphTensor* input = &graph.y;
    for (const Pointwise& pointwise : graph.after) {
      SHOAL_RETURN_IF_ERROR(AddPointwise(pointwise, *input));
      input = &pointwise.result;
    }
    SHOAL_ASSIGN_OR_RETURN(Descriptor whole, New(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
    SHOAL_RETURN_IF_ERROR(whole.SetDescriptors(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_));
    SHOAL_RETURN_IF_ERROR(Keep(std::move(whole)).status());
    return std::move(parts_);
  }

 private:
  absl::StatusOr<Descriptor> New(cudnnBackendDescriptorType_t type) const {
    return Descriptor::Create(library_, type, node_);
  }
  // Finalizes the descriptor and keeps it alive, so that cuDNN can refer to it.
  absl::StatusOr<cudnnBackendDescriptor_t> Keep(Descriptor descriptor) {
    SHOAL_RETURN_IF_ERROR(descriptor.Finalize());
    parts_.push_back(std::move(descriptor));
    return parts_.back().get();
  }
  absl::Status SetPart(Descriptor& descriptor, cudnnBackendAttributeName_t name,
                       cudnnBackendDescriptor_t part) const {
    return descriptor.SetDescriptors(name, {&part, 1});
  }

  absl::Status AddTensors(const ConvolutionGraph& graph) {
    SHOAL_RETURN_IF_ERROR(AddTensor(graph.x));
    SHOAL_RETURN_IF_ERROR(AddTensor(graph.filter));
    SHOAL_RETURN_IF_ERROR(AddTensor(graph.y));
    for (const Pointwise& pointwise : graph.after) {
      if (pointwise.bias.has_value()) SHOAL_RETURN_IF_ERROR(AddTensor(*pointwise.bias));
      SHOAL_RETURN_IF_ERROR(AddTensor(pointwise.result));
    }
    return absl::OkStatus();
  }

  absl::Status AddTensor(const GraphTensor& tensor) {
    SHOAL_ASSIGN_OR_RETURN(Descriptor descriptor, New(CUDNN_BACKEND_TENSOR_DESCRIPTOR));
    SHOAL_RETURN_IF_ERROR(descriptor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, DataType(tensor.type)));
    SHOAL_RETURN_IF_ERROR(
        descriptor.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const int64_t>(tensor.dims)));
    SHOAL_RETURN_IF_ERROR(
        descriptor.Set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const int64_t>(tensor.strides)));
    SHOAL_RETURN_IF_ERROR(descriptor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, tensor.uid));
    SHOAL_RETURN_IF_ERROR(descriptor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignmentBytes));
    SHOAL_RETURN_IF_ERROR(descriptor.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.is_virtual));
    SHOAL_ASSIGN_OR_RETURN(tensors_[tensor.uid], Keep(std::move(descriptor)));
    return absl::OkStatus();
  }

  absl::Status AddConvolution(const ConvolutionGraph& graph) {
    SHOAL_ASSIGN_OR_RETURN(Descriptor window, New(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
    const auto set_pair = [&](cudnnBackendAttributeName_t name,
                              const std::array<int64_t, 2>& pair) {
      return window.Set(name, std::span<const int64_t>(pair));
    };
    SHOAL_RETURN_IF_ERROR(window.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2}));
    SHOAL_RETURN_IF_ERROR(window.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT));
    SHOAL_RETURN_IF_ERROR(window.Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION));
    SHOAL_RETURN_IF_ERROR(set_pair(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, graph.strides));
    SHOAL_RETURN_IF_ERROR(set_pair(CUDNN_ATTR_CONVOLUTION_DILATIONS, graph.dilation));
    SHOAL_RETURN_IF_ERROR(set_pair(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, graph.padding_before));
    SHOAL_RETURN_IF_ERROR(set_pair(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, graph.padding_after));
    SHOAL_ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t convolution, Keep(std::move(window)));

    const PassAttributes& names = AttributesOf(graph.pass);
    SHOAL_ASSIGN_OR_RETURN(Descriptor operation, New(names.operation));
    SHOAL_RETURN_IF_ERROR(SetPart(operation, names.x, tensors_[graph.x.uid]));
    SHOAL_RETURN_IF_ERROR(SetPart(operation, names.filter, tensors_[graph.filter.uid]));
    SHOAL_RETURN_IF_ERROR(SetPart(operation, names.y, tensors_[graph.y.uid]));
    SHOAL_RETURN_IF_ERROR(SetPart(operation, names.convolution, convolution));
    SHOAL_RETURN_IF_ERROR(operation.Set(names.alpha, 1.0f));
    SHOAL_RETURN_IF_ERROR(operation.Set(names.beta, 0.0f));
    return KeepOperation(std::move(operation));
  }

  absl::Status AddPointwise(const Pointwise& pointwise, const GraphTensor& input) {
    SHOAL_ASSIGN_OR_RETURN(Descriptor function, New(CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
    SHOAL_RETURN_IF_ERROR(function.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT));
    if (pointwise.kind == Pointwise::Kind::kAddBias) {
      SHOAL_RETURN_IF_ERROR(function.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_ADD));
    } else {
      SHOAL_RETURN_IF_ERROR(SetRelu(function));
    }
    SHOAL_ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t kept, Keep(std::move(function)));

    SHOAL_ASSIGN_OR_RETURN(Descriptor operation, New(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR));
    SHOAL_RETURN_IF_ERROR(SetPart(operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kept));
    SHOAL_RETURN_IF_ERROR(
        SetPart(operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[input.uid]));
    if (pointwise.bias.has_value()) {
      SHOAL_RETURN_IF_ERROR(
          SetPart(operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[pointwise.bias->uid]));
    }
    SHOAL_RETURN_IF_ERROR(
        SetPart(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[pointwise.result.uid]));
    return KeepOperation(std::move(operation));
  }

  static absl::Status SetRelu(Descriptor& function) {
    SHOAL_RETURN_IF_ERROR(function.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_POINTWISE_RELU_FWD));
    // Not-a-number must pass, so that a diverging model shows it.
    return function.Set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
  }

  absl::Status KeepOperation(Descriptor operation) {
    SHOAL_ASSIGN_OR_RETURN(const cudnnBackendDescriptor_t kept, Keep(std::move(operation)));
    operations_.push_back(kept);
    return absl::OkStatus();
  }

  const CudnnLibrary& library_;
  const NodeName& node_;
  std::vector<Descriptor> parts_;
  std::map<int64_t, cudnnBackendDescriptor_t> tensors_;  // by uid
  std::vector<cudnnBackendDescriptor_t> operations_;
};

}  // namespace

cudnnDataType_t DataType(ComputeDtype type) {
  switch (type) {
    case ComputeDtype::kBfloat16:
      return CUDNN_DATA_BFLOAT16;
    case ComputeDtype::kFloat16:
      return CUDNN_DATA_HALF;
    case ComputeDtype::kFloat32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

absl::StatusOr<OperationGraph> OperationGraph::Create(const CudnnLibrary& library,
                                                      const ConvolutionGraph& graph,
                                                      const NodeName& node) {
  SHOAL_ASSIGN_OR_RETURN(std::vector<Descriptor> parts, Building(library, node).Build(graph));
  return OperationGraph(std::move(parts));
}

}  // namespace shoal::cuda
