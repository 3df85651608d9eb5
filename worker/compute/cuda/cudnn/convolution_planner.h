#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_plan.h"

namespace shoal::cuda {

// Chooses an engine for a graph. Without `measure`, or where it is to be deterministic, the first
// that cuDNN's heuristics name of those that the demands allow: the same each time. Otherwise the
// fastest of the first few. Not thread-safe.
class ConvolutionPlanner {
 public:
  struct Options {
    // All outlive it.
    const CudnnLibrary* library;
    const CudnnDevice* device;
    // How long a plan takes, in any unit.
    std::function<absl::StatusOr<double>(ConvolutionPlan& plan)> measure = {};
    // What hinders nothing, for people.
    std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
  };
  explicit ConvolutionPlanner(Options options) : options_(std::move(options)) {}

  // Where no engine does: NoEngine's error.
  absl::StatusOr<ConvolutionPlan> Plan(const ConvolutionGraph& graph,
                                       const ConvolutionDemands& demands, const NodeName& node);

 private:
  // A plan within the demands.
  absl::StatusOr<ConvolutionPlan> TryEngine(const ConvolutionGraph& graph,
                                            const ConvolutionDemands& demands, Engine engine,
                                            const NodeName& node) const;

  const Options options_;
};

}  // namespace shoal::cuda
