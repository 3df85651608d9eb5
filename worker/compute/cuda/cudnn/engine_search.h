#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/cudnn_device.h"
#include "worker/compute/cuda/cudnn/engine_config.h"
#include "worker/compute/cuda/cudnn/operation_graph.h"

namespace shoal::cuda {

// An engine with settings to compute a graph.
struct Engine {
  EngineConfig config;
  EngineNotes notes;
  std::vector<Descriptor> parts;  // cuDNN's descriptors; the last is the config, made of the others

  const Descriptor& descriptor() const { return parts.back(); }
};

// Returns the engines of cuDNN's heuristics for the graph on this device, the best first, followed
// by its fallback engines. Needs no GPU.
absl::StatusOr<std::vector<Engine>> SuggestEngines(const CudnnLibrary& library,
                                                   const CudnnDevice& device,
                                                   const OperationGraph& graph,
                                                   const NodeName& node);

// Returns the engine with this config; an error if this cuDNN has none for the graph.
absl::StatusOr<Engine> MakeEngine(const CudnnLibrary& library, const CudnnDevice& device,
                                  const OperationGraph& graph, const EngineConfig& config,
                                  const NodeName& node);

}  // namespace shoal::cuda
