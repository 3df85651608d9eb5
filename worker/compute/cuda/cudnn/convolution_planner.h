#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_plan.h"
#include "worker/compute/cuda/cudnn/plan_cache.h"

namespace shoal::cuda {

// Chooses an engine for a graph. Without `measure`, or where it is to be deterministic, the first
// that cuDNN's heuristics name of those that the demands allow: the same each time. Otherwise the
// fastest of the first few, which is found once and kept in the cache. Not thread-safe.
class ConvolutionPlanner {
 public:
  struct Options {
    // All outlive it.
    const CudnnLibrary* library;
    const CudnnDevice* device;
    PlanCache* cache;
    // How long a plan takes, in any unit.
    std::function<absl::StatusOr<double>(ConvolutionPlan& plan)> measure = {};
    // What hinders nothing, for people; once, as it is of one graph what it is of the next.
    std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
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
  bool warned_ = false;
};

}  // namespace shoal::cuda
