#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/job/job.h"

namespace shoal {

// Values by the names of variables.
using Variables = std::map<std::string, std::vector<float>>;

// The model that a run has saved; a failure of the test where there is none.
Variables ReadModel(const std::string& run_dir);

// Trains so many steps, of one batch each, as one process would: the same batches, kernels and
// optimizer, no cluster; what the job compresses as it travels from and to `ps` of them.
Variables TrainAlone(const Job& job, uint64_t steps, int ps = 1);

void ExpectSameBits(const Variables& got, const Variables& want);
// Within what other roundings of the same updates make of them.
void ExpectClose(const Variables& got, const Variables& want);

}  // namespace shoal
