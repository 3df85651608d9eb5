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

// What a data set takes of a worker's memory, in bytes; pages of files, which the kernel drops when
// memory is short, do not count.
struct DatasetMemory {
  uint64_t held = 0;      // as long as it is open
  uint64_t at_times = 0;  // on top, at most, while examples are read

  // Of two that are open together.
  DatasetMemory operator+(const DatasetMemory& other) const {
    return {.held = held + other.held, .at_times = at_times + other.at_times};
  }
};

// The shape of a label where there is none.
inline const Shape kNoLabel = {0};

// Random access to examples by index. A format keeps an index of its examples and reads them on
// demand; nothing here needs a data set to fit in memory. Thread-safe after opening.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual uint64_t size() const = 0;
  // One for each input of the model, in its order, and of weighted examples the weight.
  virtual const std::vector<Feature>& features() const = 0;
  // Shape of one label, without the batch axis; kNoLabel where the source is `unlabelled` and its
  // format does without.
  virtual const Shape& label_shape() const = 0;

  // Writes example `index` and its label: a span for each feature, of ElementCount of its shape,
  // and one for the label.
  virtual absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                            std::span<float> label) const = 0;
  // The label alone: the one that Read writes, but for a damaged example in whose place another
  // stands, which has a label of its own. For who looks through labels without reading examples.
  virtual absl::Status ReadLabel(uint64_t index, std::span<float> label) const = 0;

  // What people call example `index` of it: the file where each is one of its own, else its number.
  virtual std::string NameOf(uint64_t index) const { return std::to_string(index); }
  // Where the labels are, for messages: "train-labels.idx", "the folders of flowers".
  virtual std::string LabelSource() const = 0;
  // Whether reading an example is work, as decoding a picture is, and not mainly copying: then
  // several threads read.
  virtual bool IsWorkToRead() const { return false; }
  virtual DatasetMemory memory() const { return {}; }
  // What is read for a label alone, on average, where labels are in the records that hold the
  // examples; 0: they are apart from them.
  virtual uint64_t bytes_for_label() const { return 0; }
};

// Opens what a job names, for a model with these inputs: the format's file, of which its subset,
// in which damaged examples are passed over if they may be, behind its cache. Errors name the file,
// the offset and what was expected, a line for each file that cannot be opened; it is kNotFound
// when nothing else is wrong than that files are missing. An example without a channel axis ([h,
// w]) gets one where the model's input has one; other differences from it are an error that names
// both shapes. Where the source has weights, the last of `inputs` is the weight.
absl::StatusOr<std::unique_ptr<Dataset>> OpenDataset(const DataSource& source,
                                                     const std::vector<Feature>& inputs);

}  // namespace shoal
