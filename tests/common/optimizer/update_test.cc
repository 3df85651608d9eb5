#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "common/optimizer/optimizer.h"

namespace shoal {
namespace {

constexpr size_t kSize = 67;  // no multiple of any vector length

struct Case {
  const char* name;
  const char* class_name;
  const char* config;
};
void PrintTo(const Case& value, std::ostream* out) { *out << value.name; }

std::unique_ptr<const Optimizer> Make(const Case& value) {
  auto optimizer = MakeOptimizer(std::string(R"({"class_name": ")") + value.class_name +
                                 R"(", "config": )" + value.config + "}");
  EXPECT_TRUE(optimizer.ok()) << optimizer.status();
  return *std::move(optimizer);
}

// The formulas of Keras, straightforward, in doubles.
struct Reference {
  nlohmann::json options;  // as resolved
  bool adam = false;
  std::vector<double> w, a, b;

  void Apply(const std::vector<float>& gradient, int t) {
    const double lr = options["learning_rate"];
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = gradient[i];
      w[i] -= w[i] * options["weight_decay"].get<double>() * lr;
      if (adam) {
        const double beta_1 = options["beta_1"], beta_2 = options["beta_2"];
        a[i] = beta_1 * a[i] + (1 - beta_1) * g;
        b[i] = beta_2 * b[i] + (1 - beta_2) * g * g;
        const double alpha = lr * std::sqrt(1 - std::pow(beta_2, t)) / (1 - std::pow(beta_1, t));
        w[i] -= alpha * a[i] / (std::sqrt(b[i]) + options["epsilon"].get<double>());
      } else {
        const double momentum = options["momentum"];
        a[i] = momentum * a[i] - lr * g;
        w[i] += options["nesterov"] ? momentum * a[i] - lr * g : a[i];
      }
    }
  }
};

class OptimizerTest : public testing::TestWithParam<Case> {};

TEST_P(OptimizerTest, FollowsTheFormulasForHundredIterations) {
  const auto optimizer = Make(GetParam());
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> w(kSize), gradient(kSize);
  for (float& x : w) x = normal(random);
  const nlohmann::json config = nlohmann::json::parse(optimizer->config());
  Reference reference{config["config"],
                      config["class_name"] == "Adam",
                      {w.begin(), w.end()},
                      std::vector<double>(kSize),
                      std::vector<double>(kSize)};
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
  const auto optimizer = Make(GetParam());
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

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerTest,
    testing::Values(
        Case{"Sgd", "SGD", R"({"learning_rate": 0.03})"},
        Case{"SgdDecay", "SGD", R"({"learning_rate": 0.03, "weight_decay": 0.1})"},
        Case{"Momentum", "SGD", R"({"learning_rate": 0.03, "momentum": 0.9})"},
        Case{"MomentumDecay", "SGD",
             R"({"learning_rate": 0.03, "momentum": 0.9, "weight_decay": 0.1})"},
        Case{"Nesterov", "SGD", R"({"learning_rate": 0.03, "momentum": 0.9, "nesterov": true})"},
        Case{"NesterovDecay", "SGD",
             R"({"learning_rate": 0.03, "momentum": 0.9, "nesterov": true, "weight_decay": 0.1})"},
        Case{"Adam", "Adam", R"({"learning_rate": 0.003})"},
        Case{"AdamDecay", "Adam", R"({"learning_rate": 0.003, "weight_decay": 0.05})"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace shoal
