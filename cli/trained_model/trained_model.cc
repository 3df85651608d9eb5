#include "cli/trained_model/trained_model.h"

#include <filesystem>
#include <memory>
#include <new>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/job_strategy.h"
#include "common/memory/memory_limit.h"
#include "common/model/model_layout.h"
#include "common/optimizer/optimizer.h"
#include "common/run/checkpoint_job.h"

namespace shoal {
namespace {

// Rejects a regular file; the error says what to give instead.
absl::Status CheckIsDirectory(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is a file; give the run directory of a training (runs/NAME), or one of ",
                   "its checkpoints"));
}

// Reads the values of `checkpoint`. Requires that it was verified.
absl::Status ReadParameters(const StoredCheckpoint& checkpoint, const std::string& average_slot,
                            TrainedModel* trained) {
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<CheckpointReader> reader,
                         CheckpointReader::Open(checkpoint.directory));
  const std::vector<Variable>& variables = trained->model.model.graph.variables();
  const ModelLayout layout(variables);
  try {
    trained->parameters.resize(layout.size);
  } catch (const std::bad_alloc&) {
    return OutOfMemory("the model's variables");
  }
  for (size_t v = 0; v < variables.size(); ++v) {
    const std::string average = absl::StrCat(average_slot, "/", variables[v].name);
    const bool averaged = !average_slot.empty() && reader->Has(average);
    trained->averaged = trained->averaged || averaged;
    const ModelLayout::Extent& extent = layout.variables[v];
    SHOAL_RETURN_IF_ERROR(reader->Read(averaged ? average : variables[v].name, variables[v].shape,
                                       0, trained->parameters.data() + extent.offset,
                                       extent.size * sizeof(float)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainedModel> LoadTrainedModel(const TrainedModelOptions& options) {
  SHOAL_RETURN_IF_ERROR(CheckIsDirectory(options.path));
  TrainedModel trained;
  SHOAL_ASSIGN_OR_RETURN(const FoundCheckpoints found, FindCheckpoints(options.path));
  SHOAL_ASSIGN_OR_RETURN(const StoredCheckpoint checkpoint,
                         ChooseCheckpoint(found, options.checkpoint, &trained.notes));
  trained.checkpoint = checkpoint.directory;
  trained.step = checkpoint.manifest.cut_step;
  trained.total_steps = checkpoint.manifest.total_steps;
  SHOAL_ASSIGN_OR_RETURN(
      trained.job, JobOf(checkpoint, RealFileSystem(), options.overrides, &trained.overridden));
  SHOAL_ASSIGN_OR_RETURN(trained.model, JobModel::Of(trained.job));
  SHOAL_ASSIGN_OR_RETURN(const auto optimizer, MakePsOptimizer(trained.job));
  SHOAL_RETURN_IF_ERROR(ReadParameters(checkpoint, optimizer->average_slot(), &trained));
  return trained;
}

}  // namespace shoal
