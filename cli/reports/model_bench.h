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
  double seconds = 10;  // steps are begun for as long
  std::string device = "cpu";
  bool tf32 = false;           // ComputeFreedoms
  bool deterministic = false;  // likewise
};

// How fast a worker computes training steps of a model: gradients of a batch, without data, network
// and optimizer. Of each step by the clock and by the CPU time of the process. What the pieces of a
// step take is measured in others, as on a GPU each piece is waited for then; of the fastest of
// these, since what others do on the machine only ever makes a step slower.
struct ModelBenchResult {
  std::string model;
  ModelBenchOptions options;
  std::vector<double> step_seconds;          // by the clock, in order
  std::vector<double> step_cpu_seconds;      // of all threads
  std::map<std::string, double> op_seconds;  // of a step, by what was computed; by a GPU's clock
  std::map<std::string, int64_t> op_pieces;  // likewise, of how many pieces that is the time
  std::map<std::string, OpWork> op_work;     // of a step; without what no op is
  int64_t activation_bytes = 0;
};

// Trains on one made-up batch from the model's first values: with the cross-entropy of a class for
// each example where the output is a row of numbers, else with the mean squared error. The first
// two steps, which prepare, do not count.
absl::StatusOr<ModelBenchResult> BenchModel(const KerasModel& model,
                                            const ModelBenchOptions& options);

// For people, and as one JSON object.
std::string ModelBenchText(const ModelBenchResult& result);
std::string ModelBenchJson(const ModelBenchResult& result);

}  // namespace shoal
