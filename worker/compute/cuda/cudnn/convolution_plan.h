#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_graph.h"
#include "worker/compute/cuda/cudnn/cudnn_device.h"
#include "worker/compute/cuda/cudnn/engine_search.h"
#include "worker/compute/cuda/cudnn/operation_graph.h"
#include "worker/compute/cuda/runtime/stream.h"

namespace shoal::cuda {

// cuDNN's handle for a device and a stream. Owns cuDNN's resources there. Not thread-safe.
class CudnnHandle {
 public:
  // Uses the calling thread's current device, which must be current at every use. Both arguments
  // must outlive the handle.
  static absl::StatusOr<CudnnHandle> Create(const CudnnLibrary& library, const Stream& stream);

  cudnnHandle_t get() const { return handle_.get(); }

 private:
  struct Destroy {
    const CudnnLibrary* library;
    void operator()(cudnnHandle_t handle) const { library->cudnnDestroy(handle); }
  };
  explicit CudnnHandle(cudnnHandle_t handle, const CudnnLibrary& library)
      : handle_(handle, Destroy{&library}) {}

  std::unique_ptr<cudnnContext, Destroy> handle_;
};

// A graph with an engine that computes it, ready to run. Not thread-safe.
class ConvolutionPlan {
 public:
  // kUnimplemented, among other errors, if the engine cannot run the graph after all. `library`
  // must outlive the plan.
  static absl::StatusOr<ConvolutionPlan> Create(const CudnnLibrary& library,
                                                const CudnnDevice& device,
                                                const ConvolutionGraph& graph, Engine engine,
                                                const NodeName& node);

  const EngineConfig& config() const { return engine_.config; }
  // The text from which a planner can make the plan again.
  std::string choice() const { return EngineConfigText(engine_.config); }
  const EngineNotes& notes() const { return engine_.notes; }
  const ConvolutionGraph& graph() const { return graph_; }
  // The memory that it needs in addition to the tensors, with the same alignment.
  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Submits the plan to the handle's stream; it runs later. `addresses` are those of
  // graph().tensors_in_memory(), in that order: device addresses, multiples of 16 bytes. An error
  // may come from earlier work.
  absl::Status Run(const CudnnHandle& handle, std::span<void* const> addresses, void* workspace);

 private:
  ConvolutionPlan(const CudnnLibrary& library, const ConvolutionGraph& graph, Engine engine,
                  Descriptor plan, int64_t workspace_bytes, const NodeName& node);

  absl::Status Address(std::span<void* const> addresses, void* workspace);

  const CudnnLibrary* library_;
  ConvolutionGraph graph_;
  std::vector<int64_t> uids_;  // of tensors_in_memory()
  Engine engine_;
  Descriptor plan_;
  int64_t workspace_bytes_;
  NodeName node_;
  // The addresses of the last run, as a descriptor of cuDNN. Kept because the next run mostly uses
  // the same.
  std::optional<Descriptor> pack_;
  std::vector<void*> addresses_;
  void* workspace_ = nullptr;
};

}  // namespace shoal::cuda
