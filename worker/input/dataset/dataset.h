#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/shape.h"
#include "common/job/data_source.h"
#include "worker/input/dataset/feature.h"

namespace shoal {

// A data set's use of a worker's memory, in bytes. Excludes pages of files, which the kernel drops
// when memory is short.
struct DatasetMemory {
  uint64_t held = 0;       // while it is open
  uint64_t temporary = 0;  // max additional, while examples are read

  // The use of two data sets that are open together.
  DatasetMemory operator+(const DatasetMemory& other) const {
    return {.held = held + other.held, .temporary = temporary + other.temporary};
  }
};

// The shape of a missing label.
inline const Shape kNoLabel = {0};

// Random access to examples by index. A format keeps an index of its examples and reads them on
// demand. A data set need not fit in memory. Thread-safe after opening.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual uint64_t size() const = 0;
  // One for each input of the model, in its order. For weighted examples, followed by the weight.
  virtual const std::vector<Feature>& features() const = 0;
  // Shape of one label, without the batch axis. It is kNoLabel if the source is `unlabelled` and
  // its format supports this.
  virtual const Shape& label_shape() const = 0;

  // Writes example `index` into a span for each feature, with ElementCount of its shape, and its
  // label into another span.
  virtual absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                            std::span<float> label) const = 0;
  // Writes only the label, to check labels without reading examples. It is the same as in Read(),
  // unless Read() replaces a damaged example by another one with its own label.
  virtual absl::Status ReadLabel(uint64_t index, std::span<float> label) const = 0;

  // The name of example `index` for messages: its file if each example has its own, else its
  // number.
  virtual std::string NameOf(uint64_t index) const { return std::to_string(index); }
  // The source of the labels, for messages: "train-labels.idx", "the folders of flowers".
  virtual std::string LabelSource() const = 0;
  // Whether reading an example needs work, such as decoding a picture, instead of mainly copying.
  // If so, several threads read.
  virtual bool IsCostlyToRead() const { return false; }
  virtual DatasetMemory memory() const { return {}; }
  // The average bytes to read for a label alone, if the records of examples contain the labels. 0
  // if labels are separate.
  virtual uint64_t bytes_for_label() const { return 0; }
};

// Opens a job's data source for a model with these inputs. Opens its format, takes the subset, then
// adds skipping of damaged examples if allowed, then the cache. Errors name the file, the offset
// and the expected content, one line for each file that cannot be opened. Returns kNotFound if
// missing files are the only problem. Adds a channel axis to examples without one ([h, w]) if the
// model's input has it. Any other difference in shape is an error with both shapes. If the source
// has weights, the last of `inputs` is the weight.
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const DataSource& source,
                                                     const std::vector<Feature>& inputs);

}  // namespace shoal
