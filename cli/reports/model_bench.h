#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/keras_model.h"
#include "worker/compute/plan/op_work.h"

namespace shoal {

struct ModelBenchOptions {
  int64_t batch_size = 32;
  int threads = 1;
  double seconds = 10;  // steps start for this long
  std::string device = "cpu";
  bool tf32 = false;           // NumericsOptions
  bool deterministic = false;  // likewise
};

// The speed of a worker's training steps for a model: gradients of a batch, without data, network
// and optimizer. Each step has its elapsed time and the CPU time of the process. Separate steps
// measure the pieces of a step, because a GPU must wait for each piece then. Their times are those
// of the fastest such step: other load on the machine only makes steps slower.
struct ModelBenchResult {
  std::string model;
  ModelBenchOptions options;
  std::vector<double> step_seconds;          // elapsed time, in order
  std::vector<double> step_cpu_seconds;      // of all threads
  std::map<std::string, double> op_seconds;  // of a step, by op; on a GPU, by its clock
  std::map<std::string, int64_t> op_pieces;  // likewise: number of pieces in that time
  std::map<std::string, OpWork> op_work;     // of a step; only ops have an entry
  int64_t activation_bytes = 0;
};

// Trains on a made-up batch, from the model's first values. The loss is the cross-entropy of class
// numbers if the output is a row of numbers, else the mean squared error. The first two steps only
// warm up and do not count.
absl::StatusOr<ModelBenchResult> BenchModel(const KerasModel& model,
                                            const ModelBenchOptions& options);

// Format a result for people, and as one JSON object.
std::string ModelBenchText(const ModelBenchResult& result);
std::string ModelBenchJson(const ModelBenchResult& result);

}  // namespace shoal
