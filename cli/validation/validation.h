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

// A cluster spec and a job that were found to be right.
struct ValidatedJob {
  std::optional<ClusterSpec> cluster;  // none where none was given
  Job job;
  std::vector<std::string> overridden;  // a line for each field that was not taken from the file
  KerasModel model;
  std::string initial_weights;  // as DescribeInitialWeights() has them
};

// Reads a cluster spec (as LoadClusterSpec() does, without need of a task), a job file and its
// model. With neither a file nor TF_CONFIG, the job stands alone. All errors of all of them come in
// one status, a line each. Data files are not looked at. `overrides` are as LoadJob() takes them.
absl::StatusOr<ValidatedJob> ValidateFiles(const std::string& cluster_spec_file,
                                           const std::string& job_file,
                                           const std::vector<JobOverride>& overrides = {});

// The model of a job, and whether its optimizer can train it. Errors name the file that the model
// stands in: its own, or `job_file`.
absl::StatusOr<KerasModel> ModelOfJob(const Job& job, const std::string& job_file);

// Lines that say which variables begin with saved values, and which do not and why
// (FindInitialWeights); empty where the job names none. Errors name the file.
absl::StatusOr<std::string> DescribeInitialWeights(const Job& job, const KerasModel& model);

// What the job's data is, as far as it is on this machine: only the workers read it.
struct FoundData {
  std::optional<uint64_t> training_examples;
  std::optional<uint64_t> test_examples;
  DatasetMemory memory;      // that a worker takes for it
  std::string missing;       // a line for each file that is not here
  std::string not_read_all;  // a line for each file of which not all was looked at
  std::string classes;       // as DescribeClasses() has them
};
// Opens them; errors are those of what is here and wrong.
absl::StatusOr<FoundData> CheckData(const Job& job, const KerasModel& model);

// "3 classes: cat, dog, fish", the first ten of them; and, of a loss that takes their numbers,
// whether an output of the model stands for none. Empty without names.
std::string DescribeClasses(const std::vector<std::string>& names, const Loss& loss,
                            const Shape& output);

struct TaskCounts {
  int ps = 1;
  int workers = 1;
};
// The memory of the coordinator, of each ps, and of one of the workers, in this order. `examples`
// and `data` as in NeedsOf.
absl::StatusOr<std::vector<MemoryNeeds>> MemoryOfTasks(const Job& job, const KerasModel& model,
                                                       TaskCounts counts,
                                                       std::optional<uint64_t> examples,
                                                       const DatasetMemory& data = {});
// The same as one sum, for a machine that all of them run on. The programs, which share most of
// what they take, count among what may come on top.
absl::StatusOr<MemoryNeeds> MemoryOfAllTasks(const Job& job, const KerasModel& model,
                                             TaskCounts counts, std::optional<uint64_t> examples,
                                             const DatasetMemory& data = {});

// What a job needs of its cluster.
struct JobNeeds {
  struct Ps {
    std::string address;
    int64_t variable_bytes = 0;
    int64_t slot_bytes = 0;  // of the optimizer
    int64_t chunks = 0;
  };

  // What a step sends one way, as the job compresses it.
  struct Traffic {
    std::string codec;  // empty: none
    uint64_t bytes = 0;
    uint64_t float32_bytes = 0;  // without it
  };

  int64_t trainable_parameters = 0;
  int64_t other_parameters = 0;
  int64_t variable_bytes = 0;
  int64_t slot_bytes = 0;
  std::vector<Ps> ps;  // by index; empty without a cluster spec
  Traffic push;
  Traffic pull;
  // What workers compute otherwise than the model says (DescribePrecision); empty: nothing.
  std::string precision;
  // Of the coordinator, of each ps (without a cluster spec, of the only one that there were then)
  // and of a worker.
  std::vector<MemoryNeeds> memory;
  // These are 0 where the number of examples is not known; total_steps is known with `steps` in the
  // job.
  uint64_t examples = 0;
  uint64_t steps_per_epoch = 0;
  uint64_t total_steps = 0;
};

// `examples`: of the training set, > 0; none where its files cannot be read here. `data`: what the
// data sets take of a worker's memory. kInvalidArgument: the variables are cut into more chunks
// than can be held (chunk_limits.h).
absl::StatusOr<JobNeeds> NeedsOf(const ValidatedJob& validated, std::optional<uint64_t> examples,
                                 const DatasetMemory& data = {});

// The needs as lines for people. `why_no_examples` ends the sentence that stands for the steps
// where the number of examples is not known: the error of opening the data.
std::string NeedsText(const ValidatedJob& validated, const JobNeeds& needs,
                      const std::string& why_no_examples);

}  // namespace shoal
