#pragma once

#include <string>
#include <vector>

#include "common/job/job.h"

namespace shoal {

// Names of the slots that the optimizer keeps beside every trainable variable, in the order in
// which the ps lays them out; a checkpoint stores each as SLOT/VARIABLE. Empty for plain SGD.
std::vector<std::string> OptimizerSlotNames(const Job::Optimizer& optimizer);

}  // namespace shoal
