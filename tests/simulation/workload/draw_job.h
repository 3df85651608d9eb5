#pragma once

#include <cstdint>

#include "common/job/job.h"
#include "tests/simulation/random.h"
#include "tests/simulation/workload/workload.h"

namespace shoal {

// Draws a job under async, without callbacks. Sets where its sums are.
Job DrawJob(Random& random, uint64_t seed, uint64_t examples, Workload::SumsIn* sums_in);

// Gives the job early stopping, the best checkpoint or both, over short epochs. The test loss of an
// evaluation follows from its cut, which the values show only without momentum.
void DrawCallbacks(Random& random, Workload* workload);

// Compresses the messages of a quarter of the jobs. The addends of ExpectedSums have few digits, so
// bf16 keeps them and the sums stay exact. Nothing looks at live parameters, which int8 rounds.
void DrawCompression(Random& random, Workload* workload);

}  // namespace shoal
