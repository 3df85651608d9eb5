#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/cluster/cluster_spec.h"
#include "common/job/job.h"
#include "common/memory/memory_needs.h"
#include "common/model/keras_model.h"
#include "common/model/loss.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// A valid cluster spec and a valid job.
struct ValidatedJob {
  std::optional<ClusterSpec> cluster;  // absent if not given
  Job job;
  std::vector<std::string> overridden;  // a line for each overridden field
  KerasModel model;
  std::string initial_weights;  // text of DescribeInitialWeights()
};

// Reads a cluster spec (like LoadClusterSpec(), but without a task), a job file and its model.
// Reads no cluster spec if there is neither a file nor TF_CONFIG. Collects all errors of all files
// in one status, a line each. Ignores data files. `overrides` are those of LoadJob().
absl::StatusOr<ValidatedJob> ValidateFiles(const std::string& cluster_spec_file,
                                           const std::string& job_file,
                                           const std::vector<JobOverride>& overrides = {});

// Returns the model of a job. Requires that the job's optimizer can train it. Errors name the file
// with the model: its own file, or `job_file`.
absl::StatusOr<KerasModel> ModelOfJob(const Job& job, const std::string& job_file);

// Returns lines that list which variables begin with saved values, and which do not and why
// (FindInitialWeights). Empty if the job names no initial weights. Errors name the file.
absl::StatusOr<std::string> DescribeInitialWeights(const Job& job, const KerasModel& model);

// The part of the job's data that is on this machine: only the workers read all of it.
struct FoundData {
  std::optional<uint64_t> training_examples;
  std::optional<uint64_t> test_examples;
  DatasetMemory memory;      // of a worker, for the data
  std::string missing;       // a line for each missing file
  std::string not_read_all;  // a line for each file that was read only in part
  std::string classes;       // text of DescribeClasses()
};
// Opens the data. Returns errors only for wrong files, not for missing ones.
absl::StatusOr<FoundData> CheckData(const Job& job, const KerasModel& model);

// Returns for example "3 classes: cat, dog, fish", with at most ten names. If the loss takes class
// numbers, also reports the outputs of the model that have no class. Empty without names.
std::string DescribeClasses(const std::vector<std::string>& names, const Loss& loss,
                            const Shape& output);

struct TaskCounts {
  int ps = 1;
  int workers = 1;
};
// Returns the memory of the coordinator, of each ps, and of one worker, in this order. `examples`
// and `data` are those of NeedsOf.
absl::StatusOr<std::vector<MemoryNeeds>> MemoryOfTasks(const Job& job, const KerasModel& model,
                                                       TaskCounts counts,
                                                       std::optional<uint64_t> examples,
                                                       const DatasetMemory& data = {});
// Returns the sum for a machine that runs all of them. The programs share most of their memory, so
// they count as memory that may be needed at times.
absl::StatusOr<MemoryNeeds> MemoryOfAllTasks(const Job& job, const KerasModel& model,
                                             TaskCounts counts, std::optional<uint64_t> examples,
                                             const DatasetMemory& data = {});

// The needs of a job on its cluster.
struct JobNeeds {
  struct Ps {
    std::string address;
    int64_t variable_bytes = 0;
    int64_t slot_bytes = 0;  // of the optimizer
    int64_t chunks = 0;
  };

  // The payload of one step in one direction, as the job compresses it.
  struct Traffic {
    std::string codec;  // empty: none
    uint64_t bytes = 0;
    uint64_t float32_bytes = 0;  // without the codec
  };

  int64_t trainable_parameters = 0;
  int64_t other_parameters = 0;
  int64_t variable_bytes = 0;
  int64_t slot_bytes = 0;
  std::vector<Ps> ps;  // by index; empty without a cluster spec
  Traffic push;
  Traffic pull;
  // How the workers' precision differs from the model's (DescribePrecision); empty if it does not.
  std::string precision;
  // For the coordinator, each ps and a worker. Without a cluster spec there is one ps.
  std::vector<MemoryNeeds> memory;
  // 0 if the number of examples is unknown, except total_steps if the job has `steps`.
  uint64_t examples = 0;
  uint64_t steps_per_epoch = 0;
  uint64_t total_steps = 0;
};

// `examples` is the size of the training set, > 0; absent if its files are not readable here.
// `data` is the part of a worker's memory that the data sets take. kInvalidArgument: the variables
// have more chunks than the limit (chunk_limits.h).
absl::StatusOr<JobNeeds> NeedsOf(const ValidatedJob& validated, std::optional<uint64_t> examples,
                                 const DatasetMemory& data = {});

// Formats the needs as lines for people. If the number of examples is unknown, a sentence replaces
// the steps; `why_no_examples`, the error of opening the data, ends it.
std::string NeedsText(const ValidatedJob& validated, const JobNeeds& needs,
                      const std::string& why_no_examples);

}  // namespace shoal
