#pragma once

#include <vector>

#include "absl/status/status.h"
#include "worker/compute/cuda/cudnn/convolution_graph.h"
#include "worker/compute/cuda/trial.h"

namespace shoal::cuda {

// What `graph` says of TrialNumbers, in some places: computed on the host, in double, by the
// definition of the pass, as many as take some hundredths of a second, once for all trials. An
// engine that is wrong is wrong for most, if it is for one.
class ConvolutionCheck {
 public:
  explicit ConvolutionCheck(const ConvolutionGraph& graph) : graph_(graph) {}  // outlives this

  // kDataLoss where the sample is something else.
  absl::Status Check(const Trial& trial);

 private:
  struct Place {
    size_t sampled;  // which of the sample
    double value;
  };

  const ConvolutionGraph& graph_;
  std::vector<Place> places_;  // none until the first trial
};

}  // namespace shoal::cuda
