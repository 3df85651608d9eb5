#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_plan.h"
#include "worker/compute/cuda/plan_tuner.h"

namespace shoal::cuda {

// Chooses an engine for a graph. Without a tuner, or where it is to be deterministic, the first
// that cuDNN's heuristics name of those that the demands allow: the same each time. Otherwise the
// tuner's choice among these. Not thread-safe.
class ConvolutionPlanner {
 public:
  struct Options {
    // All outlive it.
    const CudnnLibrary* library;
    const CudnnDevice* device;
    PlanTuner* tuner = nullptr;
    // How long a plan takes, in any unit; for the tuner.
    std::function<absl::StatusOr<Trial>(ConvolutionPlan& plan)> measure = {};
  };
  explicit ConvolutionPlanner(Options options) : options_(std::move(options)) {}

  // Where no engine does: NoEngine's error.
  absl::StatusOr<ConvolutionPlan> Plan(const ConvolutionGraph& graph,
                                       const ConvolutionDemands& demands, const NodeName& node);

 private:
  // `most` at most, and at least one. Where no engine does: NoEngine's error.
  absl::StatusOr<std::vector<ConvolutionPlan>> Suggest(const ConvolutionGraph& graph,
                                                       const OperationGraph& operations,
                                                       const ConvolutionDemands& demands,
                                                       size_t most, const NodeName& node) const;
  // A plan within the demands.
  absl::StatusOr<ConvolutionPlan> TryEngine(const ConvolutionGraph& graph,
                                            const ConvolutionDemands& demands, Engine engine,
                                            const NodeName& node) const;

  const Options options_;
};

}  // namespace shoal::cuda
