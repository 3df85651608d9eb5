#include "ps/optimizer/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr size_t kSize = 67;  // no multiple of any vector length

// The formulas of Keras, straightforward, in doubles.
struct Reference {
  Job::Optimizer options;
  std::vector<double> w, a, b;

  void Apply(const std::vector<float>& gradient, int t) {
    const double lr = options.learning_rate;
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i];
      w[i] -= w[i] * options.weight_decay * lr;
      if (options.kind == Job::Optimizer::Kind::kAdam) {
        a[i] = options.beta_1 * a[i] + (1 - options.beta_1) * g;
        b[i] = options.beta_2 * b[i] + (1 - options.beta_2) * g * g;
        const double alpha =
            lr * std::sqrt(1 - std::pow(options.beta_2, t)) / (1 - std::pow(options.beta_1, t));
        w[i] -= alpha * a[i] / (std::sqrt(b[i]) + options.epsilon);
      } else {
        a[i] = options.momentum * a[i] - lr * g;
        w[i] += options.nesterov ? options.momentum * a[i] - lr * g : a[i];
      }
    }
  }
};

struct Named {
  const char* name;
  Job::Optimizer options;
};
void PrintTo(const Named& named, std::ostream* out) { *out << named.name; }

class OptimizerTest : public testing::TestWithParam<Named> {};

TEST_P(OptimizerTest, FollowsTheFormulasForHundredIterations) {
  const Job::Optimizer& options = GetParam().options;
  const auto optimizer = MakeOptimizer(options);
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> w(kSize), gradient(kSize);
  for (float& x : w) x = normal(random);
  Reference reference{
      options, {w.begin(), w.end()}, std::vector<double>(kSize), std::vector<double>(kSize)};
  std::vector<std::vector<float>> slots;
  std::vector<float*> slot_data;
  for (size_t i = 0; i < optimizer->slot_names().size(); ++i) {
    slots.emplace_back(kSize, optimizer->initial_slot_value(i));
  }
  for (auto& slot : slots) slot_data.push_back(slot.data());

  for (int t = 1; t <= 100; ++t) {
    for (float& g : gradient) g = normal(random);
    optimizer->Prepare(t)->Apply(gradient, w, w, slot_data);
    reference.Apply(gradient, t);
    for (size_t i = 0; i < kSize; ++i) {
      ASSERT_NEAR(w[i], reference.w[i], 2e-5 * std::max(1.0, std::abs(reference.w[i])))
          << "iteration " << t << ", element " << i;
    }
  }
}

TEST_P(OptimizerTest, SameValuesInAnotherBufferAndFromUnalignedGradients) {
  const auto optimizer = MakeOptimizer(GetParam().options);
  std::mt19937_64 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> w(kSize), gradient(kSize);
  for (float& x : w) x = normal(random);
  for (float& g : gradient) g = normal(random);
  const size_t count = optimizer->slot_names().size();
  std::vector<std::vector<float>> slots(2 * count, std::vector<float>(kSize, 0.25f));
  std::vector<float*> first, second;
  for (size_t i = 0; i < count; ++i) {
    first.push_back(slots[i].data());
    second.push_back(slots[count + i].data());
  }
  std::vector<char> bytes(kSize * sizeof(float) + 1);
  std::memcpy(bytes.data() + 1, gradient.data(), kSize * sizeof(float));
  const std::span<const float> unaligned(reinterpret_cast<const float*>(bytes.data() + 1), kSize);

  const std::vector<float> before = w;
  std::vector<float> out(kSize, NAN);
  optimizer->Prepare(3)->Apply(unaligned, w, out, first);
  EXPECT_EQ(w, before);
  optimizer->Prepare(3)->Apply(gradient, w, w, second);
  EXPECT_EQ(out, w);
  for (size_t i = 0; i < count; ++i) EXPECT_EQ(slots[i], slots[count + i]);
}

Job::Optimizer SgdOptions(double momentum, bool nesterov, double weight_decay) {
  return {.learning_rate = 0.03,
          .momentum = momentum,
          .nesterov = nesterov,
          .weight_decay = weight_decay};
}
Job::Optimizer AdamOptions(double weight_decay) {
  return {
      .kind = Job::Optimizer::Kind::kAdam, .learning_rate = 0.003, .weight_decay = weight_decay};
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest,
                         testing::Values(Named{"Sgd", SgdOptions(0, false, 0)},
                                         Named{"SgdDecay", SgdOptions(0, false, 0.1)},
                                         Named{"Momentum", SgdOptions(0.9, false, 0)},
                                         Named{"MomentumDecay", SgdOptions(0.9, false, 0.1)},
                                         Named{"Nesterov", SgdOptions(0.9, true, 0)},
                                         Named{"NesterovDecay", SgdOptions(0.9, true, 0.1)},
                                         Named{"Adam", AdamOptions(0)},
                                         Named{"AdamDecay", AdamOptions(0.05)}),
                         [](const auto& info) { return info.param.name; });

TEST(OptimizerSlotsTest, Names) {
  EXPECT_THAT(MakeOptimizer(SgdOptions(0, false, 0))->slot_names(), IsEmpty());
  EXPECT_THAT(MakeOptimizer(SgdOptions(0.9, false, 0))->slot_names(), ElementsAre("sgd_momentum"));
  EXPECT_THAT(MakeOptimizer(AdamOptions(0))->slot_names(), ElementsAre("adam_m", "adam_v"));
}

}  // namespace
}  // namespace shoal
