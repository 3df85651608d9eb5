#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "common/model/graph.h"
#include "common/model/ops/loss.h"
#include "worker/compute/runner/model_runner.h"

namespace shoal {

std::vector<float> RandomFloats(std::mt19937& random, int64_t count, float spread = 1);

// Returns parameters for the runner's model. None is negative, because some are variances.
std::vector<float> NonNegativeParameters(std::mt19937& random, const ModelRunner& runner);

// A batch with random content for a model with one input, and the memory behind it.
struct RandomBatch {
  // The targets fit `loss`; class ids are below the extent of the model's last axis.
  RandomBatch(std::mt19937& random, const Graph& model, const Loss& loss, int64_t examples);
  Batch batch() const { return {.examples = examples, .inputs = {input}, .target = target}; }

  int64_t examples;
  std::vector<float> input;
  std::vector<float> target;
};

}  // namespace shoal
