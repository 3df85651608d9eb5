#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/job/job.h"

namespace shoal {

// Random access to examples by index. A format keeps an index of its examples and reads them on
// demand; nothing here needs a data set to fit in memory. Thread-safe after opening.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual uint64_t size() const = 0;
  // Shape of one example and of one label, without the batch axis.
  virtual const Shape& example_shape() const = 0;
  virtual const Shape& label_shape() const = 0;

  // Writes example `index` and its label as float32. The spans hold ElementCount of the shapes
  // above.
  virtual absl::Status Read(uint64_t index, std::span<float> example,
                            std::span<float> label) const = 0;
  // The label alone.
  virtual absl::Status ReadLabel(uint64_t index, std::span<float> label) const = 0;
};

// Opens a pair of files: IDX (also .gz) or NPY, told apart by content. Errors name the file, the
// offset and what was expected, a line for each of the two that cannot be opened; it is kNotFound
// when nothing else is wrong than that files are missing. Images without a channel axis ([n, h,
// w]) get one when `model_input` (a shape with kBatch first) has one; other differences from it are
// an error that names both shapes.
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const Job::DataSource& source,
                                                     const Shape& model_input);

}  // namespace shoal
