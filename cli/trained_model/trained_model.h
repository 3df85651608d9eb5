#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/trained_model/checkpoint_choice.h"
#include "common/job/job.h"
#include "worker/job/job_model.h"

namespace shoal {

// A trained model from a checkpoint, ready to compute with. Plain data.
struct TrainedModel {
  std::string checkpoint;  // its directory, absolute
  uint64_t step = 0;       // the checkpoint has all steps below it
  uint64_t total_steps = 0;
  Job job;  // as it was trained, with the overrides
  JobModel model;
  // The model's variables, laid out by ModelLayout. If the optimizer keeps moving averages
  // (use_ema), these are the averages, as in the model at the end of a training.
  std::vector<float> parameters;
  bool averaged = false;
  std::vector<std::string> overridden;  // a line for each field that differs from the training
  std::vector<std::string> notes;       // messages about the choice of the checkpoint
};

struct TrainedModelOptions {
  std::string path;  // for FindCheckpoints()
  CheckpointChoice checkpoint;
  std::vector<JobOverride> overrides;
};
// Reads the whole checkpoint. Errors are those of ChooseCheckpoint, ParseResolvedJob and JobModel.
// Never returns data of a damaged checkpoint.
absl::StatusOr<TrainedModel> LoadTrainedModel(const TrainedModelOptions& options);

}  // namespace shoal
