#include "worker/job/job_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/common/base/temporary_directory.h"
#include "worker/input/dataset/data_formats.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class JobNamesTest : public testing::Test {
 protected:
  JobNamesTest() {
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
  // Of one row of three columns, of which y is the label.
  DataSource Table(const std::string& name, const std::string& header) const {
    std::ofstream(directory_ / name) << header << "\n1,2,3\n";
    DataSource source;
    source.format = "csv";
    source.paths = {directory_ / name};
    source.labels = "y";
    return source;
  }

  const TemporaryDirectory directory_;
  Job job_;
};

TEST_F(JobNamesTest, TheTrainingSetNumbersTheClassesOfAllData) {
  EXPECT_THAT(WithNamesOfJob(job_, job_.test)->class_names, ElementsAre("bee", "cat", "dog"));
  job_.training.class_names = {"dog", "cat", "bee"};
  EXPECT_THAT(WithNamesOfJob(job_, job_.test)->class_names, ElementsAre("dog", "cat", "bee"));
  EXPECT_TRUE(WithNamesOfJob(job_, job_.training).ok());
  job_.test.class_names = {"dog"};
  EXPECT_THAT(
      std::string(WithNamesOfJob(job_, job_.test).status().message()),
      AllOf(HasSubstr(directory_ / "test: \"class_names\""), HasSubstr(directory_ / "training")));
}

TEST_F(JobNamesTest, TheJobKeepsThemWithoutItsData) {
  ASSERT_TRUE(WriteNames(&job_).ok());
  std::filesystem::remove_all(directory_ / "training");
  EXPECT_THAT(WithNamesOfJob(job_, job_.test)->class_names, ElementsAre("bee", "cat", "dog"));
  job_.training.class_names.clear();
  EXPECT_THAT(WithNamesOfJob(job_, job_.test)->class_names, IsEmpty());
}

TEST_F(JobNamesTest, TheTrainingSetHasAFolderForEach) {
  EXPECT_TRUE(CheckClassesOfTraining(job_).ok());
  job_.training.class_names = {"dog", "cat", "bee"};
  EXPECT_TRUE(CheckClassesOfTraining(job_).ok());
  job_.training.class_names.push_back("eel");
  EXPECT_THAT(std::string(CheckClassesOfTraining(job_).message()),
              AllOf(HasSubstr(directory_ / "training: "), HasSubstr("\"eel\"")));
  std::filesystem::remove_all(directory_ / "training");
  EXPECT_TRUE(CheckClassesOfTraining(job_).ok());
}

// Wherever they stand: by place they would be other numbers without a word.
TEST_F(JobNamesTest, TheTrainingSetNamesTheColumnsOfAllTables) {
  job_.training = Table("training.csv", "b,y,a");
  job_.test = Table("test.csv", "y,a,b");
  const auto columns = [&](const DataSource& source) {
    const auto named = WithNamesOfJob(job_, source);
    EXPECT_TRUE(named.ok()) << named.status();
    return named->features.empty() ? std::vector<std::string>() : named->features[0].from;
  };
  EXPECT_THAT(columns(job_.test), ElementsAre("b", "a"));
  DataSource other = job_.test;
  other.features = {{.from = {"a"}}};
  EXPECT_THAT(columns(other), ElementsAre("a"));
  other = job_.test;
  other.header = false;
  EXPECT_THAT(columns(other), IsEmpty());

  ASSERT_TRUE(WriteNames(&job_).ok());
  EXPECT_THAT(job_.training.features[0].from, ElementsAre("b", "a"));
  std::filesystem::remove(directory_ / "training.csv");
  EXPECT_THAT(columns(job_.test), ElementsAre("b", "a"));
  job_.training.features.clear();
  EXPECT_THAT(columns(job_.test), IsEmpty());
  // Columns without a name, as those of an index of pandas, are known by their place.
  job_.training = Table("training.csv", ",,y");
  EXPECT_THAT(columns(job_.test), IsEmpty());
  ASSERT_TRUE(WriteNames(&job_).ok());
  EXPECT_THAT(job_.training.features, IsEmpty());
}

// A run that was begun without their names goes on under them if they are the same by place.
TEST_F(JobNamesTest, ARunWithoutNamesIsThatOfAJobWithTheSameColumns) {
  const auto features_after = [&](bool header, std::vector<std::string> named) {
    std::ofstream(directory_ / "training.csv") << (header ? "b,y,a\n1,2,3\n" : "1,2,3\n");
    Job run;
    run.training.format = "csv";
    run.training.paths = {directory_ / "training.csv"};
    run.training.labels = header ? "y" : "1";
    run.training.header = header;
    Job job = run;
    job.training.features = {{.from = std::move(named)}};
    MatchColumnNames(run, &job);
    return job.training.features.size();
  };
  EXPECT_EQ(features_after(true, {"b", "a"}), 0u);
  EXPECT_EQ(features_after(true, {"a", "b"}), 1u);
  EXPECT_EQ(features_after(true, {"b"}), 1u);
  EXPECT_EQ(features_after(false, {"0", "2"}), 0u);
  EXPECT_EQ(features_after(false, {"2", "0"}), 1u);
}

TEST_F(JobNamesTest, NamesStayWhereTheRunHasSomeOrItsTableIsElsewhere) {
  Job run;
  run.training.format = "csv";
  run.training.paths = {directory_ / "none.csv"};
  run.training.labels = "y";
  Job job = run;
  job.training.features = {{.from = {"a"}}};
  MatchColumnNames(run, &job);
  EXPECT_EQ(job.training.features.size(), 1u);
  std::ofstream(directory_ / "none.csv") << "a,y\n1,2\n";
  run.training.features = job.training.features;
  MatchColumnNames(run, &job);
  EXPECT_EQ(job.training.features.size(), 1u);
}

TEST_F(JobNamesTest, ATestSetThatCallsThemOtherwiseIsToldWhatToSay) {
  job_.training = Table("training.csv", "a,b,y");
  const std::vector<Feature> inputs = {{.name = "x", .shape = {2}}};
  const auto open = [&](const DataSource& source) {
    const auto named = WithNamesOfJob(job_, source);
    return named.ok() ? OpenDataset(*named, inputs).status() : named.status();
  };
  job_.test = Table("test.csv", "A,B,y");
  EXPECT_THAT(std::string(open(job_.test).message()),
              AllOf(HasSubstr("test.csv: "), HasSubstr("\"a\""), HasSubstr("A, B, y"),
                    HasSubstr("--set 'data.test.features=[...]'")));
  job_.test.features = {{.from = {"A", "B"}}};
  EXPECT_TRUE(open(job_.test).ok());
  job_.test.features = {{.from = {"a", "b"}}};
  EXPECT_THAT(std::string(open(job_.test).message()), testing::Not(HasSubstr("--set")));
}

// A job is text.
TEST_F(JobNamesTest, NamesThatNoTextHoldsAreLeftToTheFolder) {
  std::filesystem::create_directory(directory_ / "training/\xff");
  ASSERT_TRUE(WriteNames(&job_).ok());
  EXPECT_THAT(job_.training.class_names, IsEmpty());
  EXPECT_EQ(WithNamesOfJob(job_, job_.test)->class_names.size(), 4u);
}

TEST_F(JobNamesTest, OtherDataHaveNone) {
  job_.training.format = "tfrecord";
  EXPECT_TRUE(WriteNames(&job_).ok());
  EXPECT_THAT(job_.training.class_names, IsEmpty());
  EXPECT_THAT(WithNamesOfJob(job_, job_.test)->class_names, IsEmpty());
}

}  // namespace
}  // namespace shoal
