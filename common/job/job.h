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

// What to train: the job file, checked. Plain data; immutable after parsing. docs/job-file.md
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
    // A step that its worker has been at for longer than so many median steps is leased to a second
    // one; 0: none is.
    double speculate_after = 0;
    // The most updates between the pull and the apply of a gradient; none: as many as there are.
    std::optional<uint64_t> max_staleness;
    // The learning rate of an update is divided by the staleness of its gradient.
    bool learning_rate_by_staleness = false;
    // "linear" or "sqrt": the learning rate grows with the number of gradients that are computed at
    // once. Empty: it does not.
    std::string scale_learning_rate;
    // The optimizer has less momentum, the more workers there are.
    bool momentum_by_workers = false;
    // In the first so many steps that scale, and under async the number of steps that are out at
    // once, grow to what they are to be. 0: they are so from the first step on.
    uint64_t warmup_steps = 0;
    // Of async: by which these three go. 0: as many as are listed, until that is written here
    // (ResolveStrategy), or none of them is asked for.
    uint64_t workers = 0;
    // Of async: workers pull where the values are expected to be so many updates later.
    uint64_t look_ahead = 0;
    // Of async: of a momentum that each worker keeps for itself; 0: none does.
    double worker_momentum = 0;
    // The steps whose gradients become one update. 0: under sync as many as workers are listed,
    // until that is written here (ResolveStrategy); else each step is an update.
    uint64_t gradients_per_update = 0;
    // Of local: the batches from which a worker makes a step, by the job's optimizer.
    uint64_t batches_per_step = 1;
    // Of local: the groups of chunks that are exchanged in turn while a step is computed; 1: all at
    // its end.
    uint64_t fragments = 1;
    // Of local: canonical config of what the ps apply to what it comes to. Empty: as the number of
    // listed workers has it, until that is written here (ResolveStrategy).
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

  // How gradients are pushed and values pulled: what MakeCodec() reads; empty: as float32.
  struct Compression {
    std::string push;
    std::string pull;
  };

  // Saved values that variables begin with (FindInitialWeights).
  struct InitialWeights {
    std::string path;     // absolute; empty: there are none, all begin with their initializers
    uint32_t crc32c = 0;  // of the file, or of a checkpoint's manifest; 0: there was none
  };

  std::string name;
  std::string model_path;  // absolute; empty where the model came inside the resolved text
  std::string model_json;  // Keras JSON text
  InitialWeights initial_weights;
  DataSource training;
  DataSource test;   // empty(): no evaluation
  std::string loss;  // canonical Keras config: MakeLoss() reads it
  std::vector<std::string> metrics;
  std::vector<std::string> weighted_metrics;  // in which examples count by their weights
  // What examples of a class count in training, by the class; those of others 1.
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

  // The whole job as one JSON text, every default written out, the model inside, all paths
  // absolute: what the coordinator sends to workers and ps and keeps as job.json in a checkpoint.
  // Canonical: equal jobs give equal texts.
  std::string ResolvedText() const;
  // JobFingerprint of ResolvedText().
  uint32_t Fingerprint() const;
};

// Tells jobs apart, whole: CRC-32C of a resolved text, byte for byte as the coordinator sends it.
// Coordinator, ps, workers and evaluator compare jobs by this number alone. In a checkpoint it is
// the checksum of job.json.
uint32_t JobFingerprint(std::string_view resolved_text);

// The checksum by which Job::InitialWeights are known again, of what lies at `path`.
absl::StatusOr<uint32_t> ChecksumOfWeights(const std::string& path);

// A field of a job that whoever starts it gives beside the file.
struct JobOverride {
  std::string flag;   // that it was given by, for messages: "--epochs"
  std::string field;  // keys between dots: "optimizer.config.learning_rate"
  std::string value;  // JSON; a text that is none is the string it is
};

// Reads a job file. All errors at once in one kInvalidArgument status, a line each, with file, JSON
// path, value, and the nearest valid name or range. Reads the model file too (its content is
// checked by ParseKerasModel, not here), and the saved weights as far as their checksum goes, and
// says when a data file does not exist only with `check_data`. `overrides` are read as if they
// stood in the file, errors about them name the flag; each adds a line for people to `overridden`:
// "--epochs: $.epochs is 3; 5 in the file".
absl::StatusOr<Job> LoadJob(const std::string& path, bool check_data,
                            const std::vector<JobOverride>& overrides = {},
                            std::vector<std::string>* overridden = nullptr);

// Reads the text that ResolvedText() wrote. `source` names it in messages. `overrides` as in
// LoadJob(); relative paths in them start from the current directory.
absl::StatusOr<Job> ParseResolvedJob(const std::string& text, const std::string& source,
                                     const std::vector<JobOverride>& overrides = {},
                                     std::vector<std::string>* overridden = nullptr);

// The JSON paths in which two resolved texts differ, a line each: "$.batch_size: 64 there, 32 now".
// The first may be of an earlier Shoal: an option that it does not know is at its default there.
// Left out is what may change while the same job goes on: how long it trains ($.epochs, $.steps,
// $.stop_after_nan_steps, $.callbacks) and $.checkpoint.
std::vector<std::string> DescribeDifferences(const std::string& there, const std::string& now);

}  // namespace shoal
