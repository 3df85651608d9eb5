#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/job/job.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

// Values by variable name.
using Variables = std::map<std::string, std::vector<float>>;

// Reads the saved model of a run. Fails the test if there is none.
Variables ReadModel(const std::string& run_dir);

using CreateRunner =
    std::function<absl::StatusOr<std::unique_ptr<ModelRunner>>(ModelRunner::Options)>;

// Trains `steps` steps of one batch each in one process without a cluster, with the same batches,
// kernels and optimizer. Compresses values as the job does on their way to and from `ps` ps. A step
// that overflows changes nothing; the number of the next update still counts it.
Variables TrainAlone(const Job& job, uint64_t steps, int ps = 1,
                     const CreateRunner& create_runner = CreateModelRunner);

void ExpectSameBits(const Variables& got, const Variables& want);
// Expects equal values, except for different rounding of the same updates.
void ExpectClose(const Variables& got, const Variables& want);

}  // namespace shoal
