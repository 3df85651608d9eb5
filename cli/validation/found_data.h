#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/job/job.h"
#include "common/model/keras_model.h"
#include "common/model/loss.h"
#include "worker/input/dataset/dataset.h"

namespace shoal {

// The part of the job's data that is on this machine: only the workers read all of it.
struct FoundData {
  std::optional<uint64_t> training_examples;
  std::optional<uint64_t> test_examples;
  DatasetMemory memory;      // of a worker, for the data
  std::string missing;       // a line for each missing file
  std::string not_read_all;  // a line for each file that was read only in part
  std::string classes;       // text of DescribeClasses()
};

// Opens the data. `model` is the job's. Returns errors only for wrong files, not for missing ones.
absl::StatusOr<FoundData> CheckData(const Job& job, const KerasModel& model);

// Returns for example "3 classes: cat, dog, fish", with at most ten names. If the loss takes class
// numbers, also reports the outputs of the model that have no class. Empty without names.
std::string DescribeClasses(const std::vector<std::string>& names, const Loss& loss,
                            const Shape& output);

}  // namespace shoal
