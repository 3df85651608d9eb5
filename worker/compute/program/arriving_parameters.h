#pragma once

#include "absl/status/status.h"

namespace shoal {

// Parameters that may still be arriving in their buffer while a run reads others.
class ArrivingParameters {
 public:
  virtual ~ArrivingParameters() = default;

  // Waits until the values of `variable` are in the buffer. They stay unchanged until the run
  // reports that it is done with the variable. kCancelled: the values will not arrive, and the run
  // must end. A run calls this for each variable before it reads the value; several replicas may
  // call it at once from their threads.
  virtual absl::Status Await(int variable) = 0;
};

}  // namespace shoal
