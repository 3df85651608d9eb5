#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_table.h"

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
class AnyOptimizerTest : public testing::TestWithParam<Case> {};

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

TEST_P(AnyOptimizerTest, SameValuesInAnotherBufferAndFromUnalignedGradients) {
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

// However the elements are cut into runs, which slices of messages and chunks decide.
TEST_P(AnyOptimizerTest, AnElementDoesNotDependOnWhatLiesBesideIt) {
  const auto optimizer = Make(GetParam());
  if (optimizer->takes_whole_variables()) GTEST_SKIP() << "it is given whole variables";
  std::mt19937_64 random(13);
  std::normal_distribution<float> normal;
  std::vector<float> whole(kSize), gradient(kSize);
  for (float& x : whole) x = normal(random);
  std::vector<float> parts = whole;
  const size_t count = optimizer->slot_names().size();
  std::vector<std::vector<float>> slots;
  for (size_t i = 0; i < 2 * count; ++i) {
    slots.emplace_back(kSize, optimizer->initial_slot_value(static_cast<int>(i % count)));
  }
  for (int t = 1; t <= 5; ++t) {
    for (float& g : gradient) g = normal(random);
    const auto apply = [&](std::vector<float>& values, size_t first_slot, size_t begin,
                           size_t end) {
      std::vector<float*> places;
      for (size_t i = 0; i < count; ++i) places.push_back(slots[first_slot + i].data() + begin);
      const std::span<float> run = std::span(values).subspan(begin, end - begin);
      optimizer->Prepare(t)->Apply(std::span(gradient).subspan(begin, end - begin), run, run,
                                   places);
    };
    apply(whole, 0, 0, kSize);
    for (const auto& [begin, end] : {std::pair{0, 1}, {1, 20}, {20, 61}, {61, 67}}) {
      apply(parts, count, begin, end);
    }
    ASSERT_EQ(whole, parts) << "iteration " << t;
  }
}

// DecayExclusions say of which variables.
TEST_P(AnyOptimizerTest, WithoutDecayItIsTheUpdateOfNoWeightDecay) {
  const auto optimizer = Make(GetParam());
  nlohmann::json config = nlohmann::json::parse(optimizer->config());
  config["config"]["weight_decay"] = 0;
  const auto plain = *MakeOptimizer(config.dump());
  config["config"]["weight_decay"] = 0.5;
  const auto decaying = *MakeOptimizer(config.dump());
  const auto updated = [](const Optimizer& by, bool decays) {
    std::vector<float> w(kSize), gradient(kSize);
    for (size_t i = 0; i < kSize; ++i) w[i] = gradient[i] = static_cast<float>(i % 7) - 2.5f;
    std::vector<std::vector<float>> slots;
    std::vector<float*> places;
    for (size_t i = 0; i < by.slot_names().size(); ++i) {
      slots.emplace_back(kSize, by.initial_slot_value(static_cast<int>(i)));
    }
    for (std::vector<float>& slot : slots) places.push_back(slot.data());
    by.Prepare(1, {.decays = decays})->Apply(gradient, w, w, places);
    return w;
  };
  EXPECT_EQ(updated(*decaying, false), updated(*plain, true));
  EXPECT_NE(updated(*decaying, true), updated(*plain, true));
}

// After updates by equal gradients for long, the next ones are as the last.
TEST_P(AnyOptimizerTest, LooksAheadToWhereEqualUpdatesLead) {
  const auto optimizer = Make(GetParam());
  if (optimizer->PrepareAhead(1, 1) == nullptr) {
    const std::string name = GetParam().class_name;
    EXPECT_TRUE(!name.starts_with("Adam") || name == "Adamax") << "it could";
    return;
  }
  nlohmann::json config = nlohmann::json::parse(optimizer->config());
  config["config"]["weight_decay"] = 0;  // what decays is no matter of slots
  const auto plain = *MakeOptimizer(config.dump());
  std::vector<float> w(kSize), gradient(kSize), expected(kSize);
  for (size_t i = 0; i < kSize; ++i) gradient[i] = 0.01f * (static_cast<float>(i % 7) - 2.5f);
  std::vector<std::vector<float>> slots(plain->slot_names().size(), std::vector<float>(kSize));
  std::vector<float*> places;
  for (std::vector<float>& slot : slots) places.push_back(slot.data());
  constexpr int kLong = 20000, kMore = 3;
  for (int t = 1; t <= kLong; ++t) plain->Prepare(t)->Apply(gradient, w, w, places);
  const std::vector<std::vector<float>> before = slots;
  plain->PrepareAhead(kLong, kMore)->Apply({}, w, expected, places);
  EXPECT_EQ(slots, before) << "it looks, and changes nothing";
  const float start = w[0];
  for (int t = kLong + 1; t <= kLong + kMore; ++t) plain->Prepare(t)->Apply(gradient, w, w, places);
  for (size_t i = 0; i < kSize; ++i)
    EXPECT_NEAR(expected[i], w[i], 0.02 * std::abs(w[0] - start)) << i;
}

// An update of its own learning rate is that of an optimizer that has it.
TEST_P(AnyOptimizerTest, TheRateOfOneUpdateIsThatOfTheOptimizerTimesItsScale) {
  const auto optimizer = Make(GetParam());
  nlohmann::json config = nlohmann::json::parse(optimizer->config());
  config["config"]["learning_rate"] = config["config"]["learning_rate"].get<double>() / 4;
  const auto slower = *MakeOptimizer(config.dump());
  const auto updated = [](const Optimizer& by, double rate_scale) {
    std::vector<float> w(kSize), gradient(kSize);
    for (size_t i = 0; i < kSize; ++i) w[i] = gradient[i] = static_cast<float>(i % 7) - 2.5f;
    std::vector<std::vector<float>> slots(by.slot_names().size(), std::vector<float>(kSize, 0.25f));
    std::vector<float*> places;
    for (std::vector<float>& slot : slots) places.push_back(slot.data());
    by.Prepare(3, {.rate_scale = rate_scale})->Apply(gradient, w, w, places);
    return w;
  };
  EXPECT_EQ(updated(*optimizer, 0.25), updated(*slower, 1));
  EXPECT_NE(updated(*optimizer, 0.25), updated(*optimizer, 1));
}

// After some updates one with next to no learning rate leaves the values about where they are.
TEST_P(AnyOptimizerTest, ItSaysWhetherTheRateOfOneUpdateScalesAllBefore) {
  const auto optimizer = Make(GetParam());
  std::mt19937_64 random(17);
  std::normal_distribution<float> normal;
  std::vector<float> w(kSize), gradient(kSize);
  for (float& x : w) x = normal(random);
  std::vector<std::vector<float>> slots;
  std::vector<float*> places;
  for (size_t i = 0; i < optimizer->slot_names().size(); ++i) {
    slots.emplace_back(kSize, optimizer->initial_slot_value(static_cast<int>(i)));
  }
  for (std::vector<float>& slot : slots) places.push_back(slot.data());
  std::vector<float> before;
  for (int t = 1; t <= 11; ++t) {
    before = w;
    for (float& g : gradient) g = normal(random);
    optimizer->Prepare(t, {.rate_scale = t < 11 ? 1 : 1e-6})->Apply(gradient, w, w, places);
  }
  double size = 0, change = 0;
  for (size_t i = 0; i < kSize; ++i) {
    size += std::abs(before[i]);
    change += std::abs(w[i] - before[i]);
  }
  EXPECT_EQ(optimizer->recomputes_values(), change > size / 4) << change << " of " << size;
}

const Case kByFormula[] = {
    Case{"Sgd", "SGD", R"({"learning_rate": 0.03})"},
    Case{"SgdDecay", "SGD", R"({"learning_rate": 0.03, "weight_decay": 0.1})"},
    Case{"Momentum", "SGD", R"({"learning_rate": 0.03, "momentum": 0.9})"},
    Case{"MomentumDecay", "SGD",
         R"({"learning_rate": 0.03, "momentum": 0.9, "weight_decay": 0.1})"},
    Case{"Nesterov", "SGD", R"({"learning_rate": 0.03, "momentum": 0.9, "nesterov": true})"},
    Case{"NesterovDecay", "SGD",
         R"({"learning_rate": 0.03, "momentum": 0.9, "nesterov": true, "weight_decay": 0.1})"},
    Case{"Adam", "Adam", R"({"learning_rate": 0.003})"},
    Case{"AdamDecay", "Adam", R"({"learning_rate": 0.003, "weight_decay": 0.05})"}};

// The formulas of the others are those of Keras by tests/golden/optimizers and optimizer_options.
const Case kOthers[] = {
    Case{"AdamW", "AdamW", "{}"},
    Case{"Amsgrad", "Adam", R"({"amsgrad": true})"},
    Case{"Adamax", "Adamax", R"({"weight_decay": 0.1})"},
    Case{"Nadam", "Nadam", "{}"},
    Case{"Adagrad", "Adagrad", "{}"},
    Case{"Adadelta", "Adadelta", "{}"},
    Case{"Rmsprop", "RMSprop", "{}"},
    Case{"RmspropMomentum", "RMSprop", R"({"momentum": 0.5})"},
    Case{"RmspropCentered", "RMSprop", R"({"centered": true})"},
    Case{"RmspropCenteredMomentum", "RMSprop", R"({"centered": true, "momentum": 0.5})"},
    Case{"Ftrl", "Ftrl", R"({"l1_regularization_strength": 0.01, "beta": 0.1})"},
    Case{"FtrlPower", "Ftrl", R"({"learning_rate_power": -0.3})"},
    Case{"Lion", "Lion", "{}"},
    Case{"Lamb", "Lamb", R"({"weight_decay": 0.1})"},
    Case{"MovingAverage", "SGD", R"({"use_ema": true, "ema_overwrite_frequency": 2})"},
};

INSTANTIATE_TEST_SUITE_P(All, OptimizerTest, testing::ValuesIn(kByFormula),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(ByFormula, AnyOptimizerTest, testing::ValuesIn(kByFormula),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Others, AnyOptimizerTest, testing::ValuesIn(kOthers),
                         [](const auto& info) { return info.param.name; });

TEST(OptimizerTableTest, EachLineOfTheTableHasACase) {
  for (const std::string& name : OptimizerTable().Names()) {
    const auto of_class = [&](const Case& value) { return value.class_name == name; };
    EXPECT_TRUE(std::any_of(std::begin(kByFormula), std::end(kByFormula), of_class) ||
                std::any_of(std::begin(kOthers), std::end(kOthers), of_class))
        << name;
  }
}

// From zero, and where nothing is to change, there is no ratio of norms.
TEST(LambTest, StepsByItsRateWhereANormIsZero) {
  const Case lamb{"Lamb", "Lamb", R"({"learning_rate": 0.5, "epsilon": 1e-12})"};
  const auto optimizer = Make(lamb);
  EXPECT_TRUE(optimizer->takes_whole_variables());
  std::vector<float> w(2000), m(w.size()), v(w.size());
  const std::vector<float> gradient(w.size(), -3);
  optimizer->Prepare(1)->Apply(gradient, w, w, std::vector<float*>{m.data(), v.data()});
  for (const float value : w) ASSERT_FLOAT_EQ(value, 0.5);

  // Steps of 1 each: the norms of values and steps are as 0.5 to 1.
  optimizer->Prepare(2)->Apply(gradient, w, w, std::vector<float*>{m.data(), v.data()});
  for (const float value : w) ASSERT_FLOAT_EQ(value, 0.75);

  const std::vector<float> none(w.size()), before = w;
  std::vector<float> zero_m(w.size()), zero_v(w.size());
  optimizer->Prepare(1)->Apply(none, w, w, std::vector<float*>{zero_m.data(), zero_v.data()});
  EXPECT_EQ(w, before);
}

// U_t of Nadam, which Keras multiplies up from update to update.
TEST(NadamTest, ItsProductIsThatOfAllUpdates) {
  const Case nadam{"Nadam", "Nadam", R"({"learning_rate": 1, "beta_1": 0.999, "beta_2": 0})"};
  const auto optimizer = Make(nadam);
  double product = 1;
  const auto u = [](double t) { return 0.999 * (1 - 0.5 * std::pow(0.96, t)); };
  for (int t = 1; t <= 3000; ++t) {
    product *= u(t);
    if (t > 60 && t != 1000 && t != 1001 && t != 3000) continue;
    float value = 0, first = 0, second = 0;
    float* const slots[] = {&first, &second};
    const float gradient = 1;
    optimizer->Prepare(t)->Apply({&gradient, 1}, {&value, 1}, {&value, 1}, slots);
    const double m = 0.001;
    EXPECT_NEAR(value, -(u(t + 1) * m / (1 - product * u(t + 1)) + (1 - u(t)) / (1 - product)),
                1e-5 * std::abs(value))
        << t;
  }
}

}  // namespace
}  // namespace shoal
