#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_plan.h"
#include "worker/compute/cuda/tuning/algorithm_tuner.h"

namespace shoal::cuda {

// Chooses an engine for a graph among those of cuDNN's heuristics that the demands allow. Without a
// tuner, or if the demands are deterministic, it takes the first one: the same each time. Otherwise
// the tuner chooses. Not thread-safe.
class ConvolutionPlanner {
 public:
  struct Options {
    // All of these must outlive the planner.
    const CudnnLibrary* library;
    const CudnnDevice* device;
    AlgorithmTuner* tuner = nullptr;
    // Measures a plan, for the tuner. The time may be in any unit.
    std::function<absl::StatusOr<AlgorithmTrial>(ConvolutionPlan& plan)> measure = {};
  };
  explicit ConvolutionPlanner(Options options) : options_(std::move(options)) {}

  // NoEngine's error if no engine works.
  absl::StatusOr<ConvolutionPlan> Plan(const ConvolutionGraph& graph,
                                       const ConvolutionDemands& demands, const NodeName& node);

 private:
  // Returns at least one plan and at most `max`. NoEngine's error if no engine works.
  absl::StatusOr<std::vector<ConvolutionPlan>> Suggest(const ConvolutionGraph& graph,
                                                       const OperationGraph& operations,
                                                       const ConvolutionDemands& demands,
                                                       size_t max, const NodeName& node) const;
  // Makes a plan if the engine meets the demands.
  absl::StatusOr<ConvolutionPlan> TryEngine(const ConvolutionGraph& graph,
                                            const ConvolutionDemands& demands, Engine engine,
                                            const NodeName& node) const;

  const Options options_;
};

}  // namespace shoal::cuda
