#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/job/job.h"
#include "common/model/variable.h"
#include "common/optimizer/optimizer.h"

namespace shoal {

// Writes the checkpoint at step 0 of a job with initial weights: the saved values of the variables
// that they fit, all others and the slots as a ps would begin with them, averages of the variables
// (use_ema) as these. From there on the run is
// as any other that goes on. kFailedPrecondition: the weights are not those that the job was
// started with. Reads and writes files; a megabyte in memory at a time, or a row
// where that is more.
struct FirstCheckpoint {
  const Job* job = nullptr;
  const std::vector<Variable>* variables = nullptr;
  const Optimizer* optimizer = nullptr;
  const CheckpointLayout* layout = nullptr;
  std::map<std::string, std::string> texts;  // of the checkpoint: name -> content
  Manifest manifest;                         // without timeline, steps and files
};
absl::StatusOr<StoredCheckpoint> WriteFirstCheckpoint(const FirstCheckpoint& first, uint64_t term,
                                                      CheckpointStore* store);

}  // namespace shoal
