// What stands between a format and the batches: features found by name, subsets, caches.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <set>
#include <thread>

#include "tests/worker/input/formats/data_file_content.h"
#include "worker/input/dataset/cached_dataset.h"
#include "worker/input/dataset/dataset.h"
#include "worker/input/dataset/feature_shapes.h"
#include "worker/input/dataset/skipping_dataset.h"
#include "worker/input/dataset/subset_dataset.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Example i is {i, i + 0.5}, its label {i}. Counts its reads; `bad` cannot be read.
class NumbersDataset : public Dataset {
 public:
  explicit NumbersDataset(uint64_t size) : size_(size) {}

  uint64_t size() const override { return size_; }
  const std::vector<Feature>& features() const override { return features_; }
  const Shape& label_shape() const override { return label_shape_; }
  absl::Status Read(uint64_t index, std::span<const FeatureSpan> features,
                    std::span<float> label) const override {
    ++reads_;
    if (index == bad_) return absl::DataLossError("bad");
    if (!features[0].bytes.empty()) {
      features[0].bytes[0] = static_cast<uint8_t>(index);
      features[0].bytes[1] = static_cast<uint8_t>(2 * index);
      return ReadLabel(index, label);
    }
    features[0].floats[0] = static_cast<float>(index);
    features[0].floats[1] = static_cast<float>(index) + 0.5f;
    return ReadLabel(index, label);
  }
  absl::Status ReadLabel(uint64_t index, std::span<float> label) const override {
    if (index == bad_label_) return absl::DataLossError("bad label");
    label[0] = static_cast<float>(index);
    return absl::OkStatus();
  }
  std::string LabelSource() const override { return "numbers"; }

  int reads() const { return reads_; }
  std::atomic<uint64_t> bad_ = std::numeric_limits<uint64_t>::max();
  std::atomic<uint64_t> bad_label_ = std::numeric_limits<uint64_t>::max();

 private:
  const uint64_t size_;
  const std::vector<Feature> features_ = {{.name = "x", .shape = {2}}};
  const Shape label_shape_ = {};
  mutable std::atomic<int> reads_ = 0;
};

// Its label; NaN where it cannot be read.
float LabelOf(const Dataset& dataset, uint64_t index) {
  std::vector<float> x(2), label(1);
  if (!dataset.Read(index, std::vector<FeatureSpan>{x}, label).ok()) return NAN;
  EXPECT_EQ(x[0], label[0]);
  EXPECT_EQ(x[1], label[0] + 0.5f);
  return label[0];
}

std::set<float> LabelsOf(const Dataset& dataset) {
  std::set<float> labels;
  for (uint64_t i = 0; i < dataset.size(); ++i) labels.insert(LabelOf(dataset, i));
  EXPECT_EQ(labels.size(), dataset.size());
  return labels;
}

std::unique_ptr<Dataset> Subset(const std::string& name, uint64_t seed = 3) {
  auto made = SubsetDataset::Make(
      std::make_unique<NumbersDataset>(101),
      {.validation_split = 0.2, .test_split = 0.1, .subset = name, .seed = seed});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

TEST(SubsetDatasetTest, PartsHaveTheirSharesAndNoExampleInCommon) {
  std::set<float> all;
  for (const auto& [name, size] :
       std::map<std::string, size_t>{{"training", 71}, {"validation", 20}, {"test", 10}}) {
    const std::set<float> part = LabelsOf(*Subset(name));
    EXPECT_EQ(part.size(), size) << name;
    all.insert(part.begin(), part.end());
  }
  EXPECT_EQ(all.size(), 101u);
}

TEST(SubsetDatasetTest, TheSeedAloneDecides) {
  const std::set<float> part = LabelsOf(*Subset("validation"));
  EXPECT_EQ(part, LabelsOf(*Subset("validation")));
  EXPECT_NE(part, LabelsOf(*Subset("validation", 4)));
  // For ever: whoever changed this would mix up the parts of runs that go on. Ordered by index.
  EXPECT_EQ(std::vector<float>(part.begin(), std::next(part.begin(), 4)),
            (std::vector<float>{8, 9, 14, 15}));
}

TEST(SubsetDatasetTest, AnEmptyPartIsRejectedByName) {
  const auto made = SubsetDataset::Make(std::make_unique<NumbersDataset>(9),
                                        {.test_split = 0.1, .subset = "test"});
  EXPECT_THAT(std::string(made.status().message()),
              AllOf(HasSubstr("numbers"), HasSubstr("\"test\""), HasSubstr("9 examples"),
                    HasSubstr("0.1")));
}

float LabelAloneOf(const Dataset& dataset, uint64_t index) {
  float label = -1;
  EXPECT_TRUE(dataset.ReadLabel(index, std::span(&label, 1)).ok());
  return label;
}

TEST(SkippingDatasetTest, TheNextThatCanBeReadStandsIn) {
  auto numbers = std::make_unique<NumbersDataset>(5);
  NumbersDataset* const original = numbers.get();
  const SkippingDataset skipping(std::move(numbers));
  original->bad_ = 4;
  EXPECT_EQ(LabelOf(skipping, 3), 3);
  EXPECT_EQ(LabelOf(skipping, 4), 0);
  // What is known as damaged is not read again.
  const int reads = original->reads();
  EXPECT_EQ(LabelOf(skipping, 4), 0);
  EXPECT_EQ(original->reads(), reads + 1);
}

// All labels are looked at before a training: for that no picture is decoded, damaged or not.
TEST(SkippingDatasetTest, LabelsAreReadWithoutTheExamples) {
  auto numbers = std::make_unique<NumbersDataset>(5);
  NumbersDataset* const original = numbers.get();
  const SkippingDataset skipping(std::move(numbers));
  original->bad_ = 4;
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(LabelAloneOf(skipping, i), i);
  EXPECT_EQ(original->reads(), 0);
  EXPECT_EQ(skipping.bytes_for_label(), 0u);
  original->bad_label_ = 4;
  EXPECT_EQ(LabelAloneOf(skipping, 4), 0) << "of the one that stands in";
}

class CachedDatasetTest : public testing::TestWithParam<CachedDataset::Place> {};

TEST_P(CachedDatasetTest, EveryExampleIsReadOnce) {
  auto numbers = std::make_unique<NumbersDataset>(50);
  NumbersDataset* const original = numbers.get();
  const auto cached = CachedDataset::Make(std::move(numbers), GetParam());
  ASSERT_TRUE(cached.ok()) << cached.status();
  original->bad_ = 7;
  EXPECT_TRUE(std::isnan(LabelOf(**cached, 7)));
  original->bad_ = 50;
  for (int round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(LabelOf(**cached, i), i);
  }
  EXPECT_EQ(original->reads(), 51);
}

TEST_P(CachedDatasetTest, KeepsBytesToo) {
  auto numbers = std::make_unique<NumbersDataset>(50);
  const NumbersDataset& original = *numbers;
  const auto cached = CachedDataset::Make(std::move(numbers), GetParam());
  ASSERT_TRUE(cached.ok()) << cached.status();
  for (int pass = 0; pass < 2; ++pass) {
    for (uint64_t i = 0; i < 50; ++i) {
      std::vector<uint8_t> x(2);
      float label = -1;
      ASSERT_TRUE((*cached)->Read(i, std::vector<FeatureSpan>{x}, std::span(&label, 1)).ok());
      EXPECT_EQ(x, (std::vector<uint8_t>{static_cast<uint8_t>(i), static_cast<uint8_t>(2 * i)}));
      EXPECT_EQ(label, static_cast<float>(i));
    }
  }
  EXPECT_EQ(original.reads(), 50);
}

TEST_P(CachedDatasetTest, SeveralThreadsSeeWholeExamples) {
  const auto cached = CachedDataset::Make(std::make_unique<NumbersDataset>(1000), GetParam());
  ASSERT_TRUE(cached.ok()) << cached.status();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(LabelOf(**cached, i), i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// 12 bytes an example, and what says that it is there.
TEST_P(CachedDatasetTest, SaysWhatMemoryItTakes) {
  const auto cached = CachedDataset::Make(std::make_unique<NumbersDataset>(1000), GetParam());
  ASSERT_TRUE(cached.ok()) << cached.status();
  const bool in_memory = GetParam() == CachedDataset::Place::kMemory;
  EXPECT_EQ((*cached)->memory().held, in_memory ? 13000u : 1000u);
}

INSTANTIATE_TEST_SUITE_P(Places, CachedDatasetTest,
                         testing::Values(CachedDataset::Place::kMemory,
                                         CachedDataset::Place::kDisk));

TEST(CachedDatasetTest, ADatasetWithoutRoomIsRejectedAtTheStart) {
  for (const auto place : {CachedDataset::Place::kMemory, CachedDataset::Place::kDisk}) {
    for (const uint64_t examples : {uint64_t{1} << 50, uint64_t{1} << 62}) {
      const auto made = CachedDataset::Make(std::make_unique<NumbersDataset>(examples), place);
      ASSERT_FALSE(made.ok());
      EXPECT_THAT(std::string(made.status().message()),
                  AllOf(HasSubstr("numbers"), HasSubstr(std::to_string(examples) + " examples")));
    }
  }
}

class FeaturesTest : public DataFileTest {
 protected:
  FeaturesTest() {
    Write("users", IdxHeader(0x08, {2}) + std::string("\x05\x06"));
    Write("pages", NpyHeader(1, NpyDict("<f4", "(2, 2)")) + Stored<float>({1, 2, 3, 4.5}, false));
    Write("labels", IdxHeader(0x08, {2}) + std::string("\x01\x02"));
  }
  absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::vector<Feature>& inputs,
                                                const std::map<std::string, std::string>& files = {
                                                    {"page", "pages"}, {"user", "users"}}) {
    DataSource source{.labels = Path("labels")};
    for (const auto& [input, file] : files) source.features.push_back({input, {Path(file)}});
    return OpenDataset(source, inputs);
  }
};

TEST_F(FeaturesTest, AreFoundByTheNamesOfTheInputs) {
  const auto dataset = Open({{"user", {1}, FeatureType::kInteger}, {"page", {2}}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->features()[0].shape, (Shape{1}));
  std::vector<float> user(1), page(2), label(1);
  ASSERT_TRUE((*dataset)->Read(1, std::vector<FeatureSpan>{user, page}, label).ok());
  EXPECT_EQ(user[0], 6);
  EXPECT_EQ(page, (std::vector<float>{3, 4.5}));
  EXPECT_EQ(label[0], 2);
}

TEST_F(FeaturesTest, NamesOnOneSideOnlyAreAllNamed) {
  EXPECT_THAT(std::string(Open({{"user", {1}}, {"item", {2}}}).status().message()),
              AllOf(HasSubstr("\"user\", \"item\""), HasSubstr("\"page\", \"user\"")));
  EXPECT_FALSE(Open({{"user", {1}}}).ok());
  EXPECT_FALSE(Open({{"user", {1}}, {"page", {2}}, {"third", {2}}}).ok());
  EXPECT_EQ(Open({{"user", {1}}, {"page", {2}}}, {{"", "users"}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(FeaturesTest, AValueThatIsNoIntegerIsNamed) {
  const auto dataset =
      Open({{"user", {1}, FeatureType::kInteger}, {"page", {2}, FeatureType::kInteger}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  std::vector<float> user(1), page(2), label(1);
  EXPECT_TRUE((*dataset)->Read(0, std::vector<FeatureSpan>{user, page}, label).ok());
  EXPECT_THAT(
      std::string((*dataset)->Read(1, std::vector<FeatureSpan>{user, page}, label).message()),
      AllOf(HasSubstr(Path("pages") + ": example 1: "), HasSubstr("\"page\""), HasSubstr("4.5")));
  const Feature integers{"id", {3}, FeatureType::kInteger};
  EXPECT_TRUE(CheckValues(integers, std::vector<float>{-16777216, 0, 16777216}).ok());
  EXPECT_FALSE(CheckValues(integers, std::vector<float>{0, 16777218, 0}).ok());
  EXPECT_FALSE(CheckValues(integers, std::vector<float>{0, NAN, 0}).ok());
  const Feature rows{"id", {2}, FeatureType::kInteger, /*least=*/0, /*most=*/6};
  EXPECT_TRUE(CheckValues(rows, std::vector<float>{0, 6}).ok());
  EXPECT_THAT(std::string(CheckValues(rows, std::vector<float>{0, 7}).message()),
              AllOf(HasSubstr("7"), HasSubstr("0 to 6")));
  EXPECT_FALSE(CheckValues(rows, std::vector<float>{-1, 0}).ok());
}

TEST_F(FeaturesTest, AValueThatIsNotFiniteIsNamed) {
  const Feature feature{"x", {3}};
  EXPECT_TRUE(CheckValues(feature, std::vector<float>{-3e38f, 0.5, 1e-40f}).ok());
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    EXPECT_THAT(std::string(CheckValues(feature, std::vector<float>{0, bad, 1}).message()),
                HasSubstr("\"x\""));
  }
}

TEST_F(FeaturesTest, ASourceHasItsSubsetAndItsCache) {
  DataSource source{.images = Path("users"), .labels = Path("labels")};
  source.validation_split = 0.5;
  source.subset = "training";
  source.cache = "disk";
  const auto dataset = OpenDataset(source, {{.name = "x", .shape = {1}}});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ((*dataset)->size(), 1u);
  EXPECT_EQ((*dataset)->LabelSource(), Path("labels") + " (subset training)");
}

}  // namespace
}  // namespace shoal
