#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/callback/callback.h"
#include "common/job/data_source.h"

namespace shoal {

// The checked content of a job file. Plain data; immutable after parsing. docs/job-file.md
// describes the file field by field.
struct Job {
  struct Checkpoint {
    uint64_t every_steps = 0;    // 0: not by steps
    double every_seconds = 600;  // 0: not by time
    int keep = 3;                // whole checkpoints kept
  };

  struct Strategy {
    std::string name = "async";
    int64_t min_shard_bytes = 256 << 10;  // as TensorFlow's MinSizePartitioner
    int64_t chunk_bytes = 1 << 20;
    uint64_t window_steps = 4096;  // W of the protocol: steps leased ahead of the first undone one
    double lease_timeout_seconds = 60;
    // If a step takes longer than this many median steps, a second worker gets it too. 0: never.
    double speculate_after = 0;
    // The max number of updates between the pull and the apply of a gradient. Empty: no max.
    std::optional<uint64_t> max_staleness;
    // Divides the learning rate of an update by the staleness of its gradient.
    bool learning_rate_by_staleness = false;
    // "linear" or "sqrt": the learning rate grows with the number of gradients that workers compute
    // at the same time. Empty: it does not grow.
    std::string scale_learning_rate;
    // Reduces the optimizer's momentum for more workers.
    bool momentum_by_workers = false;
    // The number of steps in which that scale grows to its final value. Under async, the number of
    // leased steps grows too. 0: both have their final values from the first step on.
    uint64_t warmup_steps = 0;
    // Only async: the number of workers, which scales the three fields above. 0: the job has none
    // of the three, or ResolveStrategy() has not yet set the number of listed workers.
    uint64_t workers = 0;
    // Only async: workers pull the values that are expected after this many more updates.
    uint64_t look_ahead = 0;
    // Only async: the momentum that each worker keeps for itself; 0: none.
    double worker_momentum = 0;
    // The number of steps whose gradients become one update. 0: each step is an update, or under
    // sync, ResolveStrategy() has not yet set the number of listed workers.
    uint64_t gradients_per_update = 0;
    // Only local: the number of batches in a step. The job's optimizer computes them in turn.
    uint64_t batches_per_step = 1;
    // Only local: the number of groups of chunks. The worker exchanges one group after another
    // during a step. 1: it exchanges all chunks at the step's end.
    uint64_t fragments = 1;
    // Only local: the canonical config of the optimizer that the ps apply to the steps' results.
    // Empty: ResolveStrategy() has not yet chosen it for the number of listed workers.
    std::string outer_optimizer;
    bool sync() const { return name == "sync"; }
    bool local() const { return name == "local"; }
    // Steps make updates together (docs/protocol.md, section 13).
    bool in_rounds() const { return sync() || gradients_per_update > 0; }
    bool scales_by_workers() const {
      return !scale_learning_rate.empty() || momentum_by_workers || warmup_steps > 0;
    }
    // A worker pulls the parameters before each step below this one, rather than with the answers
    // to its pushes.
    uint64_t pulls_below() const {
      return max_staleness.has_value() ? std::numeric_limits<uint64_t>::max() : warmup_steps;
    }
  };

  // The codecs of pushed gradients and pulled values, as MakeCodec() reads them; empty: float32.
  struct Compression {
    std::string push;
    std::string pull;
  };

  // The saved values with which variables begin (FindInitialWeights).
  struct InitialWeights {
    std::string path;     // absolute; empty: all variables begin with their initializers
    uint32_t crc32c = 0;  // of the file, or of a checkpoint's manifest; 0: there was none
  };

  std::string name;
  std::string model_path;  // absolute; empty if the model came inside the resolved text
  std::string model_json;  // Keras JSON text
  InitialWeights initial_weights;
  DataSource training;
  DataSource test;   // empty(): no evaluation
  std::string loss;  // canonical Keras config: MakeLoss() reads it
  std::vector<std::string> metrics;
  std::vector<std::string> weighted_metrics;  // in which examples count by their weights
  // The weights of the examples in training, by class. Other classes have the weight 1.
  std::map<int64_t, double> class_weight;
  std::vector<Callback> callbacks;
  std::string optimizer;  // canonical Keras config: MakeOptimizer() reads it
  int64_t batch_size = 32;
  int64_t micro_batch_size = 0;  // examples computed at once; 0: all of a batch
  uint64_t epochs = 0;           // exactly one of epochs and steps is not 0
  uint64_t steps = 0;
  uint64_t stop_after_nan_steps = 100;  // steps in a row whose loss is not finite; 0: never
  Strategy strategy;
  Compression compression;
  Checkpoint checkpoint;
  uint64_t seed = 0;

  // Returns the whole job as one JSON text with all defaults, the model, and absolute paths. The
  // coordinator sends it to workers and ps and keeps it as job.json in a checkpoint. Equal jobs
  // have equal texts.
  std::string ResolvedText() const;
  // JobFingerprint of ResolvedText().
  uint32_t Fingerprint() const;
};

// Returns the CRC-32C of a resolved text, byte for byte as the coordinator sends it. Coordinator,
// ps, workers and evaluator compare only this number to tell jobs apart. In a checkpoint, it is the
// checksum of job.json.
uint32_t JobFingerprint(std::string_view resolved_text);

// Returns the checksum of the weights at `path`, for Job::InitialWeights.
absl::StatusOr<uint32_t> ChecksumOfWeights(const std::string& path);

// A field of a job that the user gives besides the file.
struct JobOverride {
  std::string flag;   // for messages: "--epochs"
  std::string field;  // keys between dots: "optimizer.config.learning_rate"
  std::string value;  // JSON; any other text counts as a string
};

// Reads a job file. Returns all errors in one kInvalidArgument status, a line each, with file, JSON
// path, value, and the nearest valid name or range. Reads the model file too, but ParseKerasModel()
// checks its content. Reads the saved weights for their checksum. Looks for the data files only
// with `check_data`. Reads `overrides` as if they were in the file; errors about them name the
// flag. Each override adds a line for people to `overridden`: "--epochs: $.epochs is 3; 5 in the
// file".
absl::StatusOr<Job> LoadJob(const std::string& path, bool check_data,
                            const std::vector<JobOverride>& overrides = {},
                            std::vector<std::string>* overridden = nullptr);

// Reads the text that ResolvedText() wrote. `source` names it in messages. `overrides` as in
// LoadJob(); relative paths in them start from the current directory.
absl::StatusOr<Job> ParseResolvedJob(const std::string& text, const std::string& source,
                                     const std::vector<JobOverride>& overrides = {},
                                     std::vector<std::string>* overridden = nullptr);

// Returns the JSON paths in which two resolved texts differ, a line each: "$.batch_size: 64 there,
// 32 now". An earlier Shoal may have written the first text; an option that it lacks has its
// default. Omits the fields that may change while a job continues: $.epochs, $.steps,
// $.stop_after_nan_steps, $.callbacks and $.checkpoint.
std::vector<std::string> DescribeDifferences(const std::string& there, const std::string& now);

}  // namespace shoal
