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
#include "worker/compute/cuda/stream.h"

namespace shoal::cuda {

// cuDNN at work on a device, in one stream. Owns what cuDNN has there. Not thread-safe.
class CudnnHandle {
 public:
  // On the calling thread's current device, which is to be that whenever it is used. Both outlive
  // it.
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

// A graph with the engine that computes it, ready to run. Not thread-safe.
class ConvolutionPlan {
 public:
  // kUnimplemented, among others, where the engine cannot after all. `library` outlives it.
  static absl::StatusOr<ConvolutionPlan> Create(const CudnnLibrary& library,
                                                const CudnnDevice& device,
                                                const ConvolutionGraph& graph, Engine engine,
                                                const NodeName& node);

  const EngineConfig& config() const { return engine_.config; }
  // By which a planner makes it again.
  std::string choice() const { return EngineConfigText(engine_.config); }
  const EngineNotes& notes() const { return engine_.notes; }
  const ConvolutionGraph& graph() const { return graph_; }
  // What it needs besides the tensors, aligned as they are.
  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Puts it into the handle's stream. `addresses`: of graph().tensors_in_memory(), in that order,
  // multiples of 16 bytes on the device. What it does comes later, and an error may be of what ran
  // before.
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
  // The addresses of the last run, as cuDNN wants them: they are mostly the same again.
  std::optional<Descriptor> pack_;
  std::vector<void*> addresses_;
  void* workspace_ = nullptr;
};

}  // namespace shoal::cuda
