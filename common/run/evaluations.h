#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/checkpoint/manifest.h"
#include "common/files/file_system.h"

namespace shoal {

// evaluations.csv, what an evaluator has found:
//
//   step,epoch,val_loss,val_METRIC...,seconds,examples,checkpoint
//
// and a line for each checkpoint that it has evaluated, in the order in which it did. `step`: all
// steps below it are in the checkpoint; `epoch`: that of the last of them, from 1; `seconds` and
// `examples`: what the evaluation took and was of; `checkpoint`: the name of its directory. Results
// are there to the last digit. A run without an evaluator has no such file.
struct CheckpointResult {
  std::string checkpoint;
  uint64_t step = 0;
  uint64_t epoch = 0;  // from 0
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics;  // by name, without `val_`
  double seconds = 0;
  uint64_t examples = 0;
};

// What a line calls a checkpoint: the name of its directory, "step-000000000500-3-0badcafe".
std::string NameOf(const StoredCheckpoint& checkpoint);

// The header and the line of a checkpoint, each with its newline, in the order of `metric_names`.
std::string EvaluationsHeader(const std::vector<std::string>& metric_names);
std::string FormatEvaluationLine(const std::vector<std::string>& metric_names,
                                 const CheckpointResult& result);

struct Evaluations {
  std::vector<CheckpointResult> results;  // in the order of the lines
  // What could not be read, with file and line, in one line; empty where there is nothing. A line
  // that does not fit is left out, and its checkpoint as one that was not evaluated.
  std::string problem;
};

// A file that does not exist has nothing in it. Columns are found by name.
Evaluations ReadEvaluations(const std::string& path, FileSystem* files = RealFileSystem());

}  // namespace shoal
