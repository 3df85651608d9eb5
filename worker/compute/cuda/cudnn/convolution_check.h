#pragma once

#include <vector>

#include "absl/status/status.h"
#include "worker/compute/cuda/cudnn/convolution_graph.h"
#include "worker/compute/cuda/tuning/algorithm_trial.h"

namespace shoal::cuda {

// Checks the results of `graph` on TrialNumbers in some places. The host computes the right values
// in double, by the definition of the pass. It computes them once for all trials, as many as take
// some hundredths of a second. If an engine is wrong for one place, it is wrong for most.
class ConvolutionCheck {
 public:
  // `graph` must outlive this.
  explicit ConvolutionCheck(const ConvolutionGraph& graph) : graph_(graph) {}

  // kDataLoss if the sample is wrong.
  absl::Status Check(const AlgorithmTrial& trial);

 private:
  struct Place {
    size_t sampled;  // index in the sample
    double value;
  };

  const ConvolutionGraph& graph_;
  std::vector<Place> places_;  // empty before the first trial
};

}  // namespace shoal::cuda
