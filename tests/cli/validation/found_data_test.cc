#include "cli/validation/found_data.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/validation/validated_job.h"
#include "common/loss/keras_loss.h"
#include "tests/cli/validation/validation_fixture.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class FoundDataTest : public ValidationTest {};

TEST_F(FoundDataTest, RejectsWhatDoesNotGoWithTheModelsOutput) {
  json root = MinimalJob();
  const auto error = [&] {
    const auto validated = ValidateFiles(spec_, WriteJob(root));
    EXPECT_TRUE(validated.ok()) << validated.status();
    return std::string(CheckData(validated->job, validated->model).status().message());
  };
  root["loss"] = "sparse_categorical_crossentropy";
  root["class_weight"] = {{"9", 2}};
  EXPECT_EQ(error(), "");  // the data are not on this machine
  root["class_weight"]["10"] = 1;
  EXPECT_EQ(error(),
            "$.class_weight: names class 10; the model's output of shape (None, 10) has the "
            "classes 0 to 9");
  root.erase("class_weight");
  root["weighted_metrics"] = {"auc"};
  EXPECT_THAT(error(), HasSubstr("metric \"auc\""));
}

TEST_F(FoundDataTest, ALabelThatIsNoClassIsNamedByFileAndIndex) {
  json root = MinimalJob();
  root["loss"] = "sparse_categorical_crossentropy";
  Write("x.npy", NpyHeader("(3, 6)") + std::string(18, '\0'));
  const std::string labels = Write("y.npy", NpyHeader("(3,)") + std::string("\0\x9\xa", 3));
  unsetenv("TF_CONFIG");
  const auto validated = ValidateFiles("", WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_THAT(std::string(CheckData(validated->job, validated->model).status().message()),
              StartsWith(labels + ": example 2, counted from 0, has the label 10; the model has 10 "
                                  "outputs"));
  Write("y.npy", NpyHeader("(3,)") + std::string("\0\x9\x9", 3));
  const auto found = CheckData(validated->job, validated->model);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->not_read_all, IsEmpty());
}

// Files of zeros take no room on the disk.
TEST_F(FoundDataTest, SaysWhichLabelsItHasNotLookedAt) {
  json root = MinimalJob();
  root["loss"] = "sparse_categorical_crossentropy";
  constexpr uint64_t kExamples = (1 << 20) + 1;
  for (const auto& [name, shape, bytes] :
       {std::tuple("x.npy", absl::StrCat("(", kExamples, ", 6)"), kExamples * 6),
        {"y.npy", absl::StrCat("(", kExamples, ",)"), kExamples}}) {
    const std::string path = Write(name, NpyHeader(shape));
    std::filesystem::resize_file(path, 128 + bytes);
  }
  unsetenv("TF_CONFIG");
  const auto validated = ValidateFiles("", WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  const auto found = CheckData(validated->job, validated->model);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(found->not_read_all, HasSubstr("y.npy: checked the first 1048576 of 1048577 labels"));
}

TEST(DescribeClassesTest, NamesThemAndOutputsThatStandForNone) {
  const auto sparse = MakeLoss("\"sparse_categorical_crossentropy\"");
  const auto one_hot = MakeLoss("\"categorical_crossentropy\"");
  ASSERT_TRUE(sparse.ok() && one_hot.ok());
  EXPECT_EQ(DescribeClasses({}, **sparse, {kBatch, 5}), "");
  EXPECT_EQ(DescribeClasses({"cat", "dog"}, **sparse, {kBatch, 2}), "2 classes: cat, dog");
  EXPECT_EQ(DescribeClasses({"cat", "dog"}, **one_hot, {kBatch, 5}), "2 classes: cat, dog");
  EXPECT_EQ(DescribeClasses({"cat", "dog"}, **sparse, {kBatch, 5}),
            "2 classes: cat, dog; the model has 5 outputs, one for each class: the last 3 "
            "have no class");
  EXPECT_EQ(DescribeClasses(std::vector<std::string>(12, "c"), **sparse, {kBatch, 12}),
            "12 classes: c, c, c, c, c, c, c, c, c, c and 2 more");
}

}  // namespace
}  // namespace shoal
