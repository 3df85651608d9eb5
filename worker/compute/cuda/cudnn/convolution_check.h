#pragma once

#include "absl/status/status.h"
#include "worker/compute/cuda/cudnn/convolution_graph.h"
#include "worker/compute/cuda/trial.h"

namespace shoal::cuda {

// kDataLoss where the sample of `trial` is not what `graph` says of TrialNumbers. Some places are
// computed here, in double, by the definition of the pass: as many as take some hundredths of a
// second. An engine that is wrong is wrong for most, if it is for one.
absl::Status CheckTrial(const ConvolutionGraph& graph, const Trial& trial);

}  // namespace shoal::cuda
