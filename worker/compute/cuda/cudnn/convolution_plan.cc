#include "worker/compute/cuda/cudnn/convolution_plan.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace shoal::cuda {

absl::StatusOr<CudnnHandle> CudnnHandle::Create(const CudnnLibrary& library, const Stream& stream) {
  cudnnHandle_t created = nullptr;
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDNN(library, cudnnCreate(&created)));
  CudnnHandle handle(created, library);
  SHOAL_RETURN_IF_ERROR(SHOAL_CUDNN(library, cudnnSetStream(created, stream.get())));
  return handle;
}

ConvolutionPlan::ConvolutionPlan(const CudnnLibrary& library, const ConvolutionGraph& graph,
                                 Engine engine, Descriptor plan, int64_t workspace_bytes,
                                 const NodeName& node)
    : library_(&library),
      graph_(graph),
      engine_(std::move(engine)),
      plan_(std::move(plan)),
      workspace_bytes_(workspace_bytes),
      node_(node) {
  for (const GraphTensor& tensor : graph.tensors_in_memory()) uids_.push_back(tensor.uid);
}

absl::StatusOr<ConvolutionPlan> ConvolutionPlan::Create(const CudnnLibrary& library,
                                                        const CudnnDevice& device,
                                                        const ConvolutionGraph& graph,
                                                        Engine engine, const NodeName& node) {
  SHOAL_ASSIGN_OR_RETURN(
      Descriptor plan, Descriptor::Create(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, node));
  SHOAL_RETURN_IF_ERROR(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine.descriptor()));
  SHOAL_RETURN_IF_ERROR(plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.properties()));
  SHOAL_RETURN_IF_ERROR(plan.Finalize());
  SHOAL_ASSIGN_OR_RETURN(const int64_t workspace_bytes,
                         plan.GetOne<int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
  return ConvolutionPlan(library, graph, std::move(engine), std::move(plan), workspace_bytes, node);
}

absl::Status ConvolutionPlan::Address(std::span<void* const> addresses, void* workspace) {
  if (pack_.has_value() && workspace == workspace_ && std::ranges::equal(addresses, addresses_)) {
    return absl::OkStatus();
  }
  SHOAL_ASSIGN_OR_RETURN(
      Descriptor pack, Descriptor::Create(*library_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, node_));
  SHOAL_RETURN_IF_ERROR(
      pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const int64_t>(uids_)));
  SHOAL_RETURN_IF_ERROR(pack.Set<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses));
  SHOAL_RETURN_IF_ERROR(pack.Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace));
  SHOAL_RETURN_IF_ERROR(pack.Finalize());
  pack_ = std::move(pack);
  addresses_.assign(addresses.begin(), addresses.end());
  workspace_ = workspace;
  return absl::OkStatus();
}

absl::Status ConvolutionPlan::Run(const CudnnHandle& handle, std::span<void* const> addresses,
                                  void* workspace) {
  SHOAL_RETURN_IF_ERROR(Address(addresses, workspace));
  return SHOAL_CUDNN(*library_, cudnnBackendExecute(handle.get(), plan_.get(), pack_->get()),
                     node_);
}

}  // namespace shoal::cuda
