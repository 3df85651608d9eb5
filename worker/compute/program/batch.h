#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "worker/compute/program/input_values.h"

namespace shoal {

// One batch in memory: the model's inputs, in the order of Graph::inputs(), and the target.
// Row-major, first axis = examples. float32, except for ModelRunner::uint8_inputs().
struct Batch {
  int64_t examples = 0;
  std::vector<InputValues> inputs;
  std::span<const float> target;
  // The origin of the target, for errors: the file, and the index in it of each example. Empty if
  // not known.
  std::string target_file = {};
  std::span<const uint64_t> indices = {};
  // The weight of each example in the loss and in weighted metrics; empty: all 1.
  std::span<const float> weights = {};
  // For a part of a step's batch: the index of its first example in that batch. Random numbers
  // depend on it.
  int64_t first_example = 0;
  // Identifies inputs and target: no two batches that a runner trains on share an id; 0: no id.
  uint64_t id = 0;
  // The batch to train on after this one, if it is already in memory and has an id. It must stay
  // valid until this batch is done. A device receives it while computing this one. Training on
  // another batch instead is allowed.
  const Batch* next = nullptr;
};

// Sums over the examples of a batch.
struct BatchResult {
  int64_t examples = 0;
  double loss_sum = 0;
  std::vector<double> metric_sums;  // of ModelRunner::Options::metrics, one after the other
  double loss_scale = 0;            // of training with a loss scale; else 0
  bool overflowed = false;          // the scaled gradient is not finite: push nothing
};

}  // namespace shoal
