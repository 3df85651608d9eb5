#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// Values by the names of variables.
using Variables = std::map<std::string, std::vector<float>>;

// The model that a run has saved; a failure of the test where there is none.
Variables ReadModel(const std::string& run_dir);

using CreateRunner =
    std::function<absl::StatusOr<std::unique_ptr<ModelRunner>>(ModelRunner::Options)>;

// Trains so many steps, of one batch each, as one process would: the same batches, kernels and
// optimizer, no cluster; what the job compresses as it travels from and to `ps` of them. A step
// that overflows changes nothing, and the number of the next update counts it.
Variables TrainAlone(const Job& job, uint64_t steps, int ps = 1,
                     const CreateRunner& create_runner = ModelRunner::Create);

void ExpectSameBits(const Variables& got, const Variables& want);
// Within what other roundings of the same updates make of them.
void ExpectClose(const Variables& got, const Variables& want);

}  // namespace shoal
