#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/manifest.h"
#include "common/files/file_system.h"

namespace shoal {

// evaluations.csv, the results of an evaluator:
//
//   step,epoch,val_loss,val_METRIC...,seconds,examples,checkpoint
//
// followed by a line for each evaluated checkpoint, in the order of evaluation. The checkpoint
// contains all steps below `step`. `epoch` is the epoch of its last step, from 1. `seconds` and
// `examples` are the duration and the number of examples of the evaluation. `checkpoint` is the
// name of its directory. Results have all digits. A run without an evaluator has no such file.
struct CheckpointResult {
  std::string checkpoint;
  uint64_t step = 0;
  uint64_t epoch = 0;  // from 0
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;  // by name, without `val_`
  double seconds = 0;
  uint64_t examples = 0;
};

// The name of a checkpoint in a line: that of its directory, "step-000000000500-3-0badcafe".
std::string NameOf(const StoredCheckpoint& checkpoint);

// The header, and the line of a checkpoint, each with its newline. Metrics are in the order of
// `metric_names`.
std::string EvaluationsHeader(const std::vector<std::string>& metric_names);
std::string FormatEvaluationLine(const std::vector<std::string>& metric_names,
                                 const CheckpointResult& result);

struct Evaluations {
  std::vector<CheckpointResult> results;  // in the order of the lines
  // kDataLoss: invalid lines were skipped, so their checkpoints count as not evaluated. The message
  // names the first one, with file, line and value, in one line.
  absl::Status damage;
};

// Treats a missing file as empty. Finds columns by name. Returns an error if the file cannot be
// read; its lines are then not known.
absl::StatusOr<Evaluations> ReadEvaluations(const std::string& path,
                                            FileSystem* files = RealFileSystem());

}  // namespace shoal
