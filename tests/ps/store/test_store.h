#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ps/store/variable_store.h"

namespace shoal {

// A small model with everything that matters: a variable that is split over ps and cut into chunks,
// small ones that share a chunk, a scalar, a moving average, and one that is frozen. Random first
// values, or all 3.
std::vector<Variable> TestVariables(bool random_values = true);

// Chunks of 64 floats, shards of at least 80.
ShardingOptions TestSharding();

// SGD with learning rate 1: with integers as values and gradients every order of updates gives the
// same.
std::string CountingSgd(double momentum = 0);

// A moving average with which samples of kSample times integers count, too: in float32 it is 1, and
// what it leaves to the sample is exactly 1 / kSample.
inline constexpr float kSample = 1 << 30;
inline constexpr double kCountingMomentum = 1 - 1.0 / kSample;

struct TestStoreOptions {
  std::string optimizer = CountingSgd();                     // Keras config
  std::shared_ptr<const Optimizer> own_optimizer = nullptr;  // instead, if any
  int ps_index = 0;
  int ps_count = 1;
  RateScale rate_scale = {};
  uint64_t look_ahead = 0;
  uint64_t window_steps = 64;
  uint64_t most_round_steps = 0;
  uint64_t seed = 1;
  bool random_values = true;
};
// Not filled yet.
std::unique_ptr<VariableStore> MakeTestStore(const TestStoreOptions& options = {});

// A Push payload with these floats, in slices of `slice_bytes` (0: one slice).
Message GradientMessage(const std::vector<float>& values, size_t slice_bytes = 0);

// What a step pushes of a chunk to take these from its values, with CountingSgd.
Message PushOf(const VariableStore& store, int chunk, std::vector<float> values);

std::vector<float> ToFloats(const std::vector<Slice>& payload);

// Adds every rows that `store` has (its live values) to whole tensors, by variable name.
void CollectValues(const VariableStore& store, std::map<std::string, std::vector<float>>* tensors);
// The same of the ready cut: values and slots, under the names of the checkpoint.
void CollectCut(const VariableStore& store, std::map<std::string, std::vector<float>>* tensors);

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

// Chunks of the store that take pushes: 0 to this, exclusive.
int PushedChunks(const VariableStore& store);

}  // namespace shoal
