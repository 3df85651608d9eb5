#pragma once

#include <string>

#include "tests/simulation/workload/workload.h"

namespace shoal {

// Describes the workload and its faults for the trace, in several lines.
std::string Describe(const Workload& workload);

}  // namespace shoal
