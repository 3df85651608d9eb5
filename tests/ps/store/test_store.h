#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ps/store/variable_store.h"

namespace shoal {

// Returns a small model with all special cases: a variable that is split over ps and into chunks,
// small variables that share a chunk, a scalar, a moving average, and a frozen variable. The first
// values are random, or all 3.
std::vector<Variable> TestVariables(bool random_values = true);

// Returns options with chunks of 64 floats and shards of at least 80 floats.
ShardingOptions TestSharding();

// Returns SGD with learning rate 1. With integer values and gradients, its result does not depend
// on the order of updates.
std::string CountingSgd(double momentum = 0);

// A moving average whose momentum is 1 - 1 / kSample keeps its value, because that is 1 in float32.
// It adds exactly 1 / kSample of a sample. So samples of kSample times an integer count, too.
inline constexpr float kSample = 1 << 30;
inline constexpr double kCountingMomentum = 1 - 1.0 / kSample;

struct TestStoreOptions {
  std::string optimizer = CountingSgd();                     // Keras config
  std::shared_ptr<const Optimizer> own_optimizer = nullptr;  // replaces `optimizer` if set
  int ps_index = 0;
  int ps_count = 1;
  RateScale rate_scale = {};
  uint64_t look_ahead = 0;
  uint64_t window_steps = 64;
  uint64_t max_round_steps = 0;
  uint64_t seed = 1;
  bool random_values = true;
};
// Makes a store without values.
std::unique_ptr<VariableStore> MakeTestStore(const TestStoreOptions& options = {});

// Makes a Push with these floats, in slices of `slice_bytes` (0: one slice).
Message GradientMessage(const std::vector<float>& values, size_t slice_bytes = 0);

// Makes the Push of a step that subtracts these from the chunk's values, with CountingSgd.
Message PushOf(const VariableStore& store, int chunk, std::vector<float> values);

std::vector<float> ToFloats(const std::vector<Slice>& payload);

// Adds the live rows of `store` to whole tensors, by variable name.
void CollectValues(const VariableStore& store, std::map<std::string, std::vector<float>>* tensors);
// The same for the ready cut: values and slots, under their names in the checkpoint.
void CollectCut(const VariableStore& store, std::map<std::string, std::vector<float>>* tensors);

// Returns how many chunks the cut has copied, and how many floats of slots these copies have.
size_t CopiesOfCut(const VariableStore& store);
int64_t SlotFloatsOfCut(const VariableStore& store);

// Adds the number of the update to each value.
class NumberingOptimizer : public Optimizer {
 public:
  static std::shared_ptr<const NumberingOptimizer> Make() {
    JsonErrors errors("");
    KerasOptions options({}, &errors);
    return std::make_shared<const NumberingOptimizer>(options);
  }
  explicit NumberingOptimizer(KerasOptions& options) : Optimizer(options, {}) {}

  mutable std::vector<uint64_t> prepared;

 private:
  std::unique_ptr<const Update> PrepareStep(const Step& step) const override {
    class Addition : public Update {
     public:
      explicit Addition(float number) : number_(number) {}
      void Apply(std::span<const float>, std::span<const float> values, std::span<float> out,
                 std::span<float* const>) const override {
        for (size_t i = 0; i < out.size(); ++i) out[i] = values[i] + number_;
      }

     private:
      const float number_;
    };
    prepared.push_back(step.iteration);
    return std::make_unique<Addition>(static_cast<float>(step.iteration));
  }
};

// Returns the number of chunks that accept pushes; these are the first ones of the store.
int PushedChunks(const VariableStore& store);

}  // namespace shoal
