#include "cli/trained_model/prediction_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string RowOf(const PredictionFormat& format, const std::string& name,
                  const std::vector<float>& values) {
  std::string text;
  format.AppendRow(name, values, &text);
  return text;
}

TEST(PredictionFormatTest, NpyHoldsTheBytesOfTheValues) {
  const auto npy = NpyPredictions({.examples = 7, .shape = {2, 3}, .top = 2});
  const std::string head = npy->Head();
  EXPECT_EQ(head.size() % 64, 0u);
  EXPECT_THAT(head, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (7, 2, 3), }"));
  EXPECT_EQ(head.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(head.back(), '\n');
  const std::vector<float> values = {0.1f, -2, NAN, 1e-40f, 5, 6};
  const std::string row = RowOf(*npy, "a", values);
  ASSERT_EQ(row.size(), 24u);
  EXPECT_EQ(std::memcmp(row.data(), values.data(), 24), 0);
  EXPECT_THAT(NpyPredictions({.examples = 7})->Head(), HasSubstr("'shape': (7, ), }"));
}

TEST(PredictionFormatTest, CsvHasAColumnForEachValue) {
  const auto csv = CsvPredictions({.examples = 1, .shape = {2}, .class_names = {"a,b", "c"}});
  EXPECT_EQ(csv->Head(), "example,\"a,b\",c\n");
  EXPECT_EQ(RowOf(*csv, "x \"y\".jpg", {0.1f, 1}), "\"x \"\"y\"\".jpg\",0.1,1\n");
  EXPECT_EQ(CsvPredictions({.shape = {2, 2}})->Head(), "example,0,1,2,3\n");
  EXPECT_EQ(CsvPredictions({.shape = {1}})->Head(), "example,output\n");
  EXPECT_EQ(RowOf(*CsvPredictions({.shape = {1}}), "0", {NAN}), "0,nan\n");
}

TEST(PredictionFormatTest, TheHighestComeFirstAndOfEqualOnesTheFirst) {
  const PredictionRows rows{.shape = {4}, .class_names = {"a", "b", "c", "d"}, .top = 3};
  EXPECT_EQ(CsvPredictions(rows)->Head(),
            "example,class_1,output_1,class_2,output_2,class_3,output_3\n");
  EXPECT_EQ(RowOf(*CsvPredictions(rows), "x", {0.5f, 2, NAN, 2}), "x,b,2,d,2,a,0.5\n");
  EXPECT_EQ(RowOf(*JsonPredictions({.shape = {3}, .top = 1}), "x", {0, 1, -1}),
            "{\"example\": \"x\", \"top\": [{\"class\": \"1\", \"output\": 1}]}\n");
}

TEST(PredictionFormatTest, JsonIsNestedAsTheOutputIs) {
  EXPECT_EQ(RowOf(*JsonPredictions({.shape = {2, 2}}), "\x1b[2J\"", {1, 2, 3, 0.1f}),
            "{\"example\": \"\\u001b[2J\\\"\", \"output\": [[1, 2], [3, 0.1]]}\n");
  EXPECT_EQ(RowOf(*JsonPredictions({.shape = {2}, .class_names = {"a", "b"}}), "x", {1, NAN}),
            "{\"example\": \"x\", \"output\": {\"a\": 1, \"b\": null}}\n");
  EXPECT_EQ(RowOf(*JsonPredictions({}), "x", {std::numeric_limits<float>::infinity()}),
            "{\"example\": \"x\", \"output\": null}\n");
}

TEST(PredictionFormatTest, JsonKeepsNamesApartThatAreNotUtf8) {
  const auto json = JsonPredictions({.shape = {2}, .class_names = {"\xff", "\xfe"}});
  EXPECT_EQ(RowOf(*json, "a\xff.png", {1, 2}),
            "{\"example\": \"a\\\\xff.png\", \"output\": {\"\\\\xff\": 1, \"\\\\xfe\": 2}}\n");
  EXPECT_NE(RowOf(*json, "a\xfe.png", {1, 2}), RowOf(*json, "a\xff.png", {1, 2}));
}

// In its place, so that the rows of the others stay where they are.
TEST(PredictionFormatTest, AnExampleThatCannotBeReadHasARowWithoutValues) {
  const PredictionRows rows{.shape = {3}}, best{.shape = {3}, .top = 1};
  EXPECT_EQ(RowOf(*CsvPredictions(rows), "x", {}), "x,,,\n");
  EXPECT_EQ(RowOf(*CsvPredictions(best), "x", {}), "x,,\n");
  EXPECT_EQ(RowOf(*JsonPredictions(rows), "x", {}), "{\"example\": \"x\", \"output\": null}\n");
  EXPECT_EQ(RowOf(*JsonPredictions(best), "x", {}), "{\"example\": \"x\", \"top\": null}\n");
  const std::string row = RowOf(*NpyPredictions(rows), "x", {});
  float values[3];
  ASSERT_EQ(row.size(), sizeof(values));
  std::memcpy(values, row.data(), sizeof(values));
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[2]));
}

TEST(PredictionFormatTest, LogitsBecomeProbabilities) {
  std::vector<float> rows = {0, 0, 1000, 1000 + std::log(3.0f)};
  MakeProbabilities(2, rows);
  EXPECT_THAT(rows, ElementsAre(0.5f, 0.5f, testing::FloatNear(0.25f, 1e-4f),
                                testing::FloatNear(0.75f, 1e-4f)));
  std::vector<float> each = {0, std::log(3.0f), -1000};
  MakeProbabilities(0, each);
  EXPECT_THAT(each, ElementsAre(0.5f, testing::FloatEq(0.75f), 0.0f));
}

}  // namespace
}  // namespace shoal
