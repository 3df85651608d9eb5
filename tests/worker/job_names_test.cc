#include "worker/job_classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JobClassesTest : public testing::Test {
 protected:
  JobClassesTest() {
    for (const char* folder : {"training/cat", "training/bee", "training/dog", "test/dog"})
      std::filesystem::create_directories(directory_ / folder);
    job_.training = Folder("training");
    job_.test = Folder("test");
  }
  DataSource Folder(const std::string& name) const {
    DataSource source;
    source.format = "image_folder";
    source.paths = {directory_ / name};
    return source;
  }

  const TemporaryDirectory directory_;
  Job job_;
};

TEST_F(JobClassesTest, TheTrainingSetNumbersTheClassesOfAllData) {
  EXPECT_THAT(WithClassesOfJob(job_, job_.test)->class_names, ElementsAre("bee", "cat", "dog"));
  job_.training.class_names = {"dog", "cat", "bee"};
  EXPECT_THAT(WithClassesOfJob(job_, job_.test)->class_names, ElementsAre("dog", "cat", "bee"));
  EXPECT_TRUE(WithClassesOfJob(job_, job_.training).ok());
  job_.test.class_names = {"dog"};
  EXPECT_THAT(std::string(WithClassesOfJob(job_, job_.test).status().message()),
              AllOf(HasSubstr(directory_ / "test: \"class_names\""),
                    HasSubstr(directory_ / "training"), HasSubstr("leave them out")));
}

TEST_F(JobClassesTest, TheJobKeepsThemWithoutItsData) {
  ASSERT_TRUE(NameClasses(&job_).ok());
  std::filesystem::remove_all(directory_ / "training");
  EXPECT_THAT(WithClassesOfJob(job_, job_.test)->class_names, ElementsAre("bee", "cat", "dog"));
  job_.training.class_names.clear();
  EXPECT_THAT(WithClassesOfJob(job_, job_.test)->class_names, IsEmpty());
}

TEST_F(JobClassesTest, TheTrainingSetHasAFolderForEach) {
  EXPECT_TRUE(CheckClassesOfTraining(job_).ok());
  job_.training.class_names = {"dog", "cat", "bee"};
  EXPECT_TRUE(CheckClassesOfTraining(job_).ok());
  job_.training.class_names.push_back("eel");
  EXPECT_THAT(std::string(CheckClassesOfTraining(job_).message()),
              HasSubstr(directory_ / "training: has no folder \"eel\""));
  std::filesystem::remove_all(directory_ / "training");
  EXPECT_TRUE(CheckClassesOfTraining(job_).ok());
}

// A job is text.
TEST_F(JobClassesTest, NamesThatNoTextHoldsAreLeftToTheFolder) {
  std::filesystem::create_directory(directory_ / "training/\xff");
  ASSERT_TRUE(NameClasses(&job_).ok());
  EXPECT_THAT(job_.training.class_names, IsEmpty());
  EXPECT_EQ(WithClassesOfJob(job_, job_.test)->class_names.size(), 4u);
}

TEST_F(JobClassesTest, OtherDataHaveNone) {
  job_.training.format = "tfrecord";
  EXPECT_TRUE(NameClasses(&job_).ok());
  EXPECT_THAT(job_.training.class_names, IsEmpty());
  EXPECT_THAT(WithClassesOfJob(job_, job_.test)->class_names, IsEmpty());
}

}  // namespace
}  // namespace shoal
