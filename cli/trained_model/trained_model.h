#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/trained_model/checkpoint_choice.h"
#include "common/job/job.h"
#include "worker/job/job_model.h"

namespace shoal {

// A model that was trained, to be computed with: what a checkpoint holds of it. Plain data.
struct TrainedModel {
  std::string checkpoint;  // its directory, absolute
  uint64_t step = 0;       // all steps below it were taken
  uint64_t total_steps = 0;
  Job job;  // as it was trained, with what was given in the place of its fields
  JobModel model;
  // As ModelLayout lays out the model's variables: their moving averages where the optimizer keeps
  // some (use_ema), as in the model that a training leaves, else themselves.
  std::vector<float> parameters;
  bool averaged = false;
  std::vector<std::string> overridden;  // a line for each field that is not as it was trained
  std::vector<std::string> said;        // of the choice of the checkpoint
};

struct TrainedModelOptions {
  std::string path;  // as FindCheckpoints() takes it
  CheckpointChoice checkpoint;
  std::vector<JobOverride> overrides;
};
// Reads all of it. Errors are ChooseCheckpoint's, ParseResolvedJob's and JobModel's; nothing of a
// damaged checkpoint is returned.
absl::StatusOr<TrainedModel> LoadTrainedModel(const TrainedModelOptions& options);

}  // namespace shoal
