#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/shape.h"

namespace shoal {

// The contents of a row of predictions.
struct PredictionRows {
  uint64_t examples = 0;
  Shape shape;                           // of one example's output
  std::vector<std::string> class_names;  // of its values; empty: unknown
  int top = 0;                           // only this many of the highest values; 0: all, in order
};

// Formats predictions, one row per example. Writes all digits of a float32, so that the same number
// is read back. Immutable.
class PredictionFormat {
 public:
  virtual ~PredictionFormat() = default;
  // Returns the text before the first row.
  virtual std::string Head() const = 0;
  // Adds the row of an example: ElementCount(shape) values, or none if the example is damaged.
  virtual void AppendRow(const std::string& example, std::span<const float> values,
                         std::string* text) const = 0;
};

// One array of shape [examples, ...], as numpy.save writes it. Ignores names and `top`. Missing
// values are NaN.
std::unique_ptr<PredictionFormat> NpyPredictions(const PredictionRows& rows);
// RFC 4180: "example", then a column for each value. With `top`: two columns, class and value, for
// each of the highest. Missing values are empty fields.
std::unique_ptr<PredictionFormat> CsvPredictions(const PredictionRows& rows);
// One object per line: {"example": NAME, "output": …}, nested like the output, or {CLASS: value}.
// With `top`: {"example": NAME, "top": [{"class": …, "output": …}]}. Non-finite values are null.
// "output" and "top" are null if there are no values.
std::unique_ptr<PredictionFormat> JsonPredictions(const PredictionRows& rows);

// Turns logits into probabilities in place: by the softmax over each group of `classes` values, or
// by the sigmoid of each value if `classes` is 0.
void MakeProbabilities(size_t classes, std::span<float> values);

}  // namespace shoal
