#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/compute/cuda/cudnn/convolution_plan.h"

namespace shoal::cuda {

// Chooses an engine for a graph. Without `measure`, or for a deterministic job, the first that
// cuDNN's heuristics name of those that the job's demands allow: the same each time. Otherwise the
// fastest of the first few. Not thread-safe.
class ConvolutionPlanner {
 public:
  struct Options {
    // All outlive it.
    const CudnnLibrary* library;
    const CudnnDevice* device;
    ConvolutionDemands demands = {};
    // How long a plan takes, in any unit.
    std::function<absl::StatusOr<double>(ConvolutionPlan& plan)> measure = {};
    // What hinders nothing, for people.
    std::function<void(const std::string& warning)> on_warning = [](const std::string&) {};
  };
  explicit ConvolutionPlanner(Options options) : options_(std::move(options)) {}

  // Where no engine does: NoEngine's error.
  absl::StatusOr<ConvolutionPlan> Plan(const ConvolutionGraph& graph, const NodeName& node);

 private:
  // A plan within the demands.
  absl::StatusOr<ConvolutionPlan> TryEngine(const ConvolutionGraph& graph, Engine engine,
                                            const NodeName& node) const;

  const Options options_;
};

}  // namespace shoal::cuda
