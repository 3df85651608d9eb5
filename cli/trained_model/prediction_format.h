#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/shape.h"

namespace shoal {

// What a row of predictions is made of.
struct PredictionRows {
  uint64_t examples = 0;
  Shape shape;                           // of one example's output
  std::vector<std::string> class_names;  // of its values; empty: they are not known
  int top = 0;                           // only so many of the highest; 0: all, in their order
};

// How predictions are written down, a row an example. All digits that a float32 has, so that the
// same number is read back. Immutable.
class PredictionFormat {
 public:
  virtual ~PredictionFormat() = default;
  // What stands before the first row.
  virtual std::string Head() const = 0;
  // Adds the row of an example: ElementCount(shape) values, or none of one that cannot be read.
  virtual void AppendRow(const std::string& example, std::span<const float> values,
                         std::string* text) const = 0;
};

// One array of shape [examples, ...], as numpy.save writes it; takes no heed of names and `top`.
// Values that there are none of are NaN.
std::unique_ptr<PredictionFormat> NpyPredictions(const PredictionRows& rows);
// RFC 4180: "example", then a column for each value; or, with `top`, for each of the highest its
// class and its value. Values that there are none of are empty fields.
std::unique_ptr<PredictionFormat> CsvPredictions(const PredictionRows& rows);
// An object a line: {"example": NAME, "output": …}, nested as the output is, or {CLASS: value};
// with `top` {"example": NAME, "top": [{"class": …, "output": …}]}. What is no number is null, and
// so is "output" or "top" where there are no values.
std::unique_ptr<PredictionFormat> JsonPredictions(const PredictionRows& rows);

// Turns logits into probabilities, in their place: by the softmax along each row's last axis of
// `classes`, or by the sigmoid of each where `classes` is 0.
void MakeProbabilities(size_t classes, std::span<float> values);

}  // namespace shoal
