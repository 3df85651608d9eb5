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

// An engine set to compute a graph.
struct Engine {
  EngineConfig config;
  EngineNotes notes;
  std::vector<Descriptor> parts;  // cuDNN's: what the last, the config, is made of

  const Descriptor& descriptor() const { return parts.back(); }
};

// Those that cuDNN's heuristics name for the graph on this device, what is thought best first, then
// those that it names to be safe. Needs no GPU.
absl::StatusOr<std::vector<Engine>> SuggestEngines(const CudnnLibrary& library,
                                                   const CudnnDevice& device,
                                                   const OperationGraph& graph,
                                                   const NodeName& node);

// The one with this config: an error where this cuDNN has none for the graph.
absl::StatusOr<Engine> MakeEngine(const CudnnLibrary& library, const CudnnDevice& device,
                                  const OperationGraph& graph, const EngineConfig& config,
                                  const NodeName& node);

}  // namespace shoal::cuda
