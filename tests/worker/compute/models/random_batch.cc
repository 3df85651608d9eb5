#include "tests/worker/compute/models/random_batch.h"

#include <algorithm>
#include <cmath>

namespace shoal {
namespace {

int64_t BatchElements(Shape shape, int64_t examples) {
  std::replace(shape.begin(), shape.end(), kBatch, examples);
  return ElementCount(shape);
}

}  // namespace

std::vector<float> RandomFloats(std::mt19937& random, int64_t count, float spread) {
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<float> NonNegativeParameters(std::mt19937& random, const ModelRunner& runner) {
  std::vector<float> parameters = RandomFloats(random, runner.layout().size, 0.3f);
  for (float& value : parameters) value = std::abs(value);
  return parameters;
}

RandomBatch::RandomBatch(std::mt19937& random, const Graph& model, const Loss& loss,
                         int64_t batch_examples)
    : examples(batch_examples) {
  const Shape& output = model.value(model.outputs()[0]).shape;
  input = RandomFloats(random, BatchElements(model.value(model.inputs()[0]).shape, examples));
  target = RandomFloats(random, BatchElements(loss.TargetShape(output).value(), examples));
  for (float& value : target) {
    switch (loss.target()) {
      case Loss::Target::kClassNumber:
        value = static_cast<float>(random() % output.back());
        break;
      case Loss::Target::kValuePerClass:
        value = std::abs(value);
        break;
      case Loss::Target::kProbabilityPerOutput:
        value = 1 / (1 + std::exp(value));
        break;
      case Loss::Target::kValuePerOutput:
        break;
    }
  }
}

}  // namespace shoal
