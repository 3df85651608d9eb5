#include "worker/compute/cuda/cudnn/cudnn_convolutions.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/compute/cuda/cudnn/convolution_planner.h"
#include "worker/compute/cuda/tuning/run_timer.h"

namespace shoal::cuda {
namespace {

// The alignment of cudaMalloc. Engines may assume it for a workspace, because cuDNN has no
// attribute for its alignment. A program's tensors are aligned to less.
constexpr uintptr_t kWorkspaceAlignment = 256;

class ConvolutionKernel : public Kernel {
 public:
  ConvolutionKernel(const CudnnHandle* handle, ConvolutionPlan plan)
      : handle_(*handle), plan_(std::move(plan)) {}

  // The size of the aligned workspace for this plan.
  static int64_t WorkspaceBytes(const ConvolutionPlan& plan) {
    return plan.workspace_bytes() == 0
               ? 0
               : plan.workspace_bytes() + static_cast<int64_t>(kWorkspaceAlignment) - 1;
  }

  absl::Status Run(const RunContext*, std::span<void* const> tensors) override {
    const uintptr_t workspace =
        reinterpret_cast<uintptr_t>(tensors.back()) + kWorkspaceAlignment - 1;
    return plan_.Run(
        handle_, tensors.first(tensors.size() - 1),
        reinterpret_cast<void*>(workspace / kWorkspaceAlignment * kWorkspaceAlignment));
  }

 private:
  const CudnnHandle& handle_;
  ConvolutionPlan plan_;
};

// The objects that exist once cuDNN is loaded. Never moves.
struct CudnnSession {
  CudnnSession(std::unique_ptr<const CudnnLibrary> library, CudnnDevice device, CudnnHandle handle)
      : library(std::move(library)), device(std::move(device)), handle(std::move(handle)) {}

  const std::unique_ptr<const CudnnLibrary> library;
  const CudnnDevice device;
  const CudnnHandle handle;
};

class CudnnConvolutions : public Convolutions {
 public:
  explicit CudnnConvolutions(CudnnOptions options) : options_(std::move(options)) {}

  absl::StatusOr<Made> Make(const ConvolutionGraph& graph, bool trains,
                            const NodeName& node) override {
    SHOAL_RETURN_IF_ERROR(Begin());
    ConvolutionDemands demands = options_.demands;
    demands.deterministic |= !trains;
    demands.checked = trains;
    SHOAL_ASSIGN_OR_RETURN(ConvolutionPlan plan, planner_->Plan(graph, demands, node));
    Made made = {.workspace_bytes = ConvolutionKernel::WorkspaceBytes(plan)};
    made.kernel = std::make_unique<ConvolutionKernel>(&session_->handle, std::move(plan));
    return made;
  }

  absl::StatusOr<std::string> Library() override {
    SHOAL_RETURN_IF_ERROR(Begin());
    return session_->library->name();
  }

 private:
  // Loads cuDNN on the first call.
  absl::Status Begin() {
    if (planner_.has_value()) return absl::OkStatus();
    SHOAL_ASSIGN_OR_RETURN(auto library, CudnnLibrary::Load());
    SHOAL_ASSIGN_OR_RETURN(CudnnDevice device,
                           CudnnDevice::OfThisMachine(*library, options_.device_index));
    SHOAL_ASSIGN_OR_RETURN(CudnnHandle handle, CudnnHandle::Create(*library, *options_.stream));
    session_ =
        std::make_unique<CudnnSession>(std::move(library), std::move(device), std::move(handle));
    planner_.emplace(ConvolutionPlanner::Options{
        .library = session_->library.get(),
        .device = &session_->device,
        .tuner = options_.tuner,
        .measure = [this](ConvolutionPlan& plan) { return Measure(plan); }});
    return absl::OkStatus();
  }

  absl::StatusOr<AlgorithmTrial> Measure(ConvolutionPlan& plan) const {
    return TryRun(*options_.stream, TrialTensorsOf(plan.graph()), plan.workspace_bytes(),
                  [&](std::span<void* const> addresses) {
                    return plan.Run(session_->handle, addresses.first(addresses.size() - 1),
                                    addresses.back());
                  });
  }

  const CudnnOptions options_;
  std::unique_ptr<const CudnnSession> session_;  // null before the first Make
  std::optional<ConvolutionPlanner> planner_;
};

}  // namespace

std::unique_ptr<Convolutions> CreateCudnnConvolutions(CudnnOptions options) {
  return std::make_unique<CudnnConvolutions>(std::move(options));
}

}  // namespace shoal::cuda
