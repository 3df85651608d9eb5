#pragma once

#include "absl/status/status.h"

namespace shoal {

// Parameters of which some are still on their way into their buffer while a run reads others.
class ArrivingParameters {
 public:
  virtual ~ArrivingParameters() = default;

  // Waits until the values of `variable` are there; what has arrived stays as it is until the run
  // says that it is done with it. kCancelled: they do not come, and the run is to end. Called for
  // each variable before its value is read; by the threads of several replicas at once.
  virtual absl::Status Await(int variable) = 0;
};

}  // namespace shoal
