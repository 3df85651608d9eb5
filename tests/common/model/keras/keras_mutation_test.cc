#include <gtest/gtest.h>

#include <random>

#include "common/model/training/training_graph.h"
#include "tests/common/loss/loss_of.h"
#include "tests/common/model/test_models.h"

// Damaged model files: whatever comes in, a Status comes out, and what is accepted can be trained
// or is rejected with a Status too.

namespace shoal {
namespace {

constexpr uint32_t kSeed = 20260;
constexpr int kRounds = 400;  // of each kind, on each model

const std::vector<std::string>& Models() {
  static const auto& models = *new std::vector<std::string>{
      ReadText("golden/fashion_cnn/model.json"), ReadText("golden/keras2_fashion_cnn/model.json"),
      ReadText("common/model/testdata/residual_keras3.json"), ReadText("golden/nested/model.json")};
  return models;
}

void Try(const std::string& text) {
  const absl::StatusOr<KerasModel> model = ParseKerasModel(text);
  if (!model.ok()) {
    EXPECT_FALSE(model.status().message().empty());
    return;
  }
  BuildTrainingGraph(model->graph, *LossOf("MeanSquaredError")).status().IgnoreError();
  EXPECT_FALSE(model->layers.empty());
}

TEST(KerasMutationTest, FlippedBytes) {
  RecordProperty("seed", kSeed);
  std::mt19937 random(kSeed);
  for (const std::string& model : Models()) {
    for (int round = 0; round < kRounds; ++round) {
      std::string text = model;
      const int flips = 1 + static_cast<int>(random() % 3);
      for (int i = 0; i < flips; ++i) text[random() % text.size()] = static_cast<char>(random());
      Try(text);
    }
  }
}

TEST(KerasMutationTest, Truncations) {
  std::mt19937 random(kSeed);
  for (const std::string& model : Models()) {
    for (int round = 0; round < 300; ++round) Try(model.substr(0, random() % model.size()));
  }
}

// Every value in turn becomes another, at every place of the document.
TEST(KerasMutationTest, SwappedValues) {
  std::mt19937 random(kSeed);
  const std::vector<Json> odd = {nullptr,
                                 true,
                                 0,
                                 -1,
                                 1,
                                 2,
                                 1.5,
                                 -1e300,
                                 1e18,
                                 INT64_MIN,
                                 INT64_MAX,
                                 UINT64_MAX,
                                 4294967296,
                                 "",
                                 "x",
                                 "relu",
                                 "dense",
                                 "same",
                                 Json::array(),
                                 Json::object(),
                                 {1, 2},
                                 {nullptr, 3, 3, 3},
                                 {{"class_name", "Dense"}},
                                 {{"class_name", "ReLU"}, {"config", 1}}};
  for (const std::string& model : Models()) {
    const Json original = Json::parse(model);
    std::vector<Json::json_pointer> places;
    const Json leaves = original.flatten();
    for (const auto& item : leaves.items()) {
      for (Json::json_pointer at(item.key()); !at.empty(); at = at.parent_pointer()) {
        places.push_back(at);
      }
    }
    for (int round = 0; round < kRounds; ++round) {
      Json json = original;
      const Json::json_pointer& place = places[random() % places.size()];
      // Another odd value, or a part of the document that belongs elsewhere.
      json[place] = random() % 3 == 0 ? original[places[random() % places.size()]]
                                      : odd[random() % odd.size()];
      SCOPED_TRACE(testing::Message() << "seed " << kSeed << ", " << place.to_string());
      Try(json.dump());
    }
  }
}

}  // namespace
}  // namespace shoal
