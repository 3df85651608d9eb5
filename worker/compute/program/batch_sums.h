#pragma once

#include <span>

#include "worker/compute/plan/plan.h"
#include "worker/compute/program/executable.h"

namespace shoal {

// The sums of a run of `plan`, which has a loss, from data on the host: the loss of each example
// and the prediction, row-major.
BatchResult SumsOf(const Plan& plan, const RunBuffers& buffers, std::span<const float> losses,
                   std::span<const float> prediction);

// The same from the sums themselves, in the order of ProgramBuilder::SetSums.
BatchResult ResultOf(const Plan& plan, std::span<const double> sums);

}  // namespace shoal
