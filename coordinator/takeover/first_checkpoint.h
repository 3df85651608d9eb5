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

// Writes the checkpoint at step 0 of a job with initial weights. Variables that have saved values
// get these. All other variables, and the slots, get the values that a ps would begin with. Slots
// that hold averages of the variables (use_ema) begin as copies of them. The run then continues
// like any other from a checkpoint.
//
// kFailedPrecondition: the weights differ from those that the job was started with. Reads and
// writes files. Holds one megabyte in memory at a time, or one row if that is larger.
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
