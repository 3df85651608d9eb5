// Weight decay in a VariableStore: which of the variables of a chunk it touches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/ps/store/seeded_store.h"
#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

std::string Config(const std::string& class_name, const std::string& excluded) {
  return absl::StrCat(R"({"class_name": ")", class_name,
                      R"(", "config": {"learning_rate": 0.1, "weight_decay": 1,
                                       "exclude_from_weight_decay": )",
                      excluded, "}}");
}

// The values of all variables after some steps whose gradients come in slices.
std::map<std::string, std::vector<float>> Trained(const std::string& optimizer,
                                                  size_t slice_bytes) {
  const auto store = SeededStore({.optimizer = optimizer});
  for (uint64_t step = 0; step < 3; ++step) {
    for (int chunk = 0; chunk < PushedChunks(*store); ++chunk) {
      std::vector<float> gradient(store->chunk_size(chunk));
      for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 5) - 1.5f;
      EXPECT_TRUE(store->Push(GradientMessage(gradient, slice_bytes), step, chunk, 0).ok());
    }
  }
  std::map<std::string, std::vector<float>> tensors;
  CollectValues(*store, &tensors);
  return tensors;
}

// Variables that share a chunk, and slices that end anywhere in them.
TEST(PsDecayExclusionsTest, EachVariableOfAChunkDecaysByItsOwnRule) {
  for (const char* name : {"SGD", "AdamW", "Lamb"}) {
    const auto all_decay = Trained(Config(name, "[]"), 0);
    const auto none_decays = Trained(Config(name, R"([".*"])"), 0);
    EXPECT_NE(all_decay, none_decays);
    for (const size_t slice_bytes : {size_t{0}, size_t{4}, size_t{10}, size_t{36}}) {
      const auto some = Trained(Config(name, R"(["bias", "output/kernel"])"), slice_bytes);
      for (const auto& [variable, values] : some) {
        const bool excluded = variable == "dense/bias" || variable == "output/kernel";
        EXPECT_EQ(values, (excluded ? none_decays : all_decay).at(variable))
            << name << ": " << variable << ", slices of " << slice_bytes;
      }
    }
  }
}

// The copy that a cut keeps gets a late step as the live values do.
TEST(PsDecayExclusionsTest, TheCutDecaysTheSameVariables) {
  for (const char* excluded : {R"(["bias"])", R"(["kernel"])"}) {
    const auto store = SeededStore({.optimizer = Config("SGD", excluded)});
    const auto push = [&](uint64_t step, float value) {
      for (int chunk = 0; chunk < PushedChunks(*store); ++chunk) {
        const std::vector<float> gradient(store->chunk_size(chunk), value);
        ASSERT_TRUE(store->Push(GradientMessage(gradient), step, chunk, 0).ok());
      }
    };
    push(0, 1);  // biases begin as 0, which decays to 0
    std::map<std::string, std::vector<float>> before, cut, live;
    CollectValues(*store, &before);
    ASSERT_EQ(store->cut().Start(2), std::nullopt);
    push(2, 0);
    push(1, 0);
    ASSERT_TRUE(store->cut().Ready());
    CollectCut(*store, &cut);
    CollectValues(*store, &live);
    for (const char* variable : {"dense/kernel", "dense/bias", "scale"}) {
      const bool decays = !absl::StrContains(variable, excluded[2] == 'b' ? "bias" : "kernel");
      const float value = before[variable][0];
      const auto decayed = [&](float from) { return from - from * (decays ? 0.1f : 0); };
      EXPECT_EQ(cut[variable][0], decayed(value)) << variable;
      EXPECT_EQ(live[variable][0], decayed(decayed(value))) << variable;
    }
  }
}

}  // namespace
}  // namespace shoal
