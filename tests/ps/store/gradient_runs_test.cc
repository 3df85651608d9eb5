#include "ps/store/gradient_runs.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/ps/store/test_store.h"

namespace shoal {
namespace {

// Puts the runs together again, checking that they are consecutive.
std::vector<float> Assemble(const Message& message, size_t* runs) {
  std::vector<float> values;
  *runs = 0;
  ForEachRun(message, [&](size_t offset, std::span<const float> run) {
    EXPECT_EQ(offset, values.size());
    EXPECT_FALSE(run.empty());
    values.resize(offset + run.size());
    std::memcpy(values.data() + offset, run.data(), run.size_bytes());
    ++*runs;
  });
  return values;
}

TEST(GradientRunsTest, OneRunWhereTheFloatsLieTogether) {
  const std::vector<float> values = {1, 2, 3, 4, 5};
  size_t runs = 0;
  EXPECT_EQ(Assemble(GradientMessage(values), &runs), values);
  EXPECT_EQ(runs, 1u);
  EXPECT_EQ(Assemble(GradientMessage(values, 8), &runs), values);
  EXPECT_EQ(runs, 3u);
}

TEST(GradientRunsTest, AnEmptyPayloadHasNoRuns) {
  size_t runs = 0;
  EXPECT_TRUE(Assemble(Message{}, &runs).empty());
  EXPECT_EQ(runs, 0u);
}

TEST(GradientRunsTest, FloatsCutApartAnywhere) {
  std::vector<float> values(50);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f / static_cast<float>(i + 1);
  size_t runs = 0;
  for (size_t slice_bytes = 1; slice_bytes <= 201; ++slice_bytes) {
    EXPECT_EQ(Assemble(GradientMessage(values, slice_bytes), &runs), values) << slice_bytes;
  }
}

TEST(GradientRunsTest, RandomSlicesAlsoEmptyOnes) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<float> values(random() % 40);
    for (float& value : values) value = static_cast<float>(random() % 1000);
    const Message whole = GradientMessage(values);
    Message message;
    for (size_t offset = 0; offset < values.size() * 4;) {
      const size_t size = std::min<size_t>(random() % 12, values.size() * 4 - offset);
      const auto part = std::make_shared<std::vector<char>>(size);
      CopyPayload(whole, offset, part->data(), size);
      message.payload.push_back({part->data(), size, part});
      offset += size;
    }
    size_t runs = 0;
    ASSERT_EQ(Assemble(message, &runs), values);
  }
}

}  // namespace
}  // namespace shoal
