#include "common/daemon/settings/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "common/base/version.h"
#include "common/daemon/process/exit_code.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    settings_.AddText("data_dir", &data_dir_, "Where data is");
    settings_.AddChoice("format", &format_, {"text", "json"}, "Form");
    settings_.AddInteger("threads", &threads_, 1, 64, "Threads");
    settings_.AddNumber("rate", &rate_, 0, 1, "Rate");
    settings_.AddSwitch("fast", &fast_, "Hurry");
    settings_.AddForms("place", &place_, {"here", "row:N"}, CheckPlace, "Where");
    settings_.AddTexts("roots", &roots_, "Where else");
    settings_.AddHidden("secret_pid", &hidden_, 0, 10);
    for (const char* name : kVariables) unsetenv(name);
  }
  ~SettingsTest() override {
    for (const char* name : kVariables) unsetenv(name);
  }

  // Parses and keeps what was printed.
  std::optional<int> Parse(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "shoal-test");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const auto code = settings_.Parse(static_cast<int>(arguments.size()), arguments.data());
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  static absl::Status CheckPlace(const std::string& place) {
    if (place == "here" || place.starts_with("row:")) return absl::OkStatus();
    return absl::InvalidArgumentError(place + " is no place");
  }

  std::string SourceOf(const std::string& name) {
    for (const auto& setting : settings_.resolved()) {
      if (setting.name == name) return setting.value + " from " + SettingSourceName(setting.source);
    }
    return "";
  }

  static constexpr const char* kVariables[] = {"SHOAL_DATA_DIR", "SHOAL_FORMAT", "SHOAL_THREADS",
                                               "SHOAL_RATE",     "SHOAL_FAST",   "SHOAL_PLACE",
                                               "SHOAL_ROOTS",    "SHOAL_CONFIG"};
  const TemporaryDirectory directory_;
  const std::string file_ = directory_ / "settings.toml";
  Settings settings_{"shoal-test", "Tests settings."};
  std::string data_dir_ = "/data";
  std::string format_ = "text";
  int64_t threads_ = 2;
  double rate_ = 0.5;
  bool fast_ = false;
  std::string place_ = "here";
  std::vector<std::string> roots_;
  int64_t hidden_ = 0;
  std::string out_;
  std::string err_;
};

TEST_F(SettingsTest, DefaultsStayWithoutAnySource) {
  EXPECT_EQ(Parse({}), std::nullopt) << err_;
  EXPECT_EQ(threads_, 2);
  EXPECT_EQ(SourceOf("threads"), "2 from default");
  EXPECT_EQ(SourceOf("fast"), "false from default");
}

TEST_F(SettingsTest, FlagWinsOverEnvironmentOverFileOverDefault) {
  std::ofstream(file_) << "threads = 3\nrate = 0.25\nformat = \"json\"\nfast = true\n";
  setenv("SHOAL_THREADS", "4", 1);
  setenv("SHOAL_RATE", "0.75", 1);
  setenv("SHOAL_DATA_DIR", "", 1);  // set to nothing is not set
  EXPECT_EQ(Parse({"--config", file_.c_str(), "--threads=5"}), std::nullopt) << err_;
  EXPECT_EQ(SourceOf("threads"), "5 from flag");
  EXPECT_EQ(SourceOf("rate"), "0.75 from environment");
  EXPECT_EQ(SourceOf("format"), "json from file");
  EXPECT_EQ(SourceOf("fast"), "true from file");
  EXPECT_EQ(SourceOf("data_dir"), "/data from default");
  EXPECT_EQ(threads_, 5);
  EXPECT_EQ(rate_, 0.75);
  EXPECT_TRUE(fast_);
}

TEST_F(SettingsTest, AListHasTheValuesOfOneSource) {
  std::ofstream(file_) << "roots = [\"/a\", \"/b\"]\n";
  setenv("SHOAL_ROOTS", "/c:/d", 1);
  const std::vector<const char*> named = {"--config", file_.c_str()};
  EXPECT_EQ(Parse(named), std::nullopt) << err_;
  EXPECT_THAT(roots_, ElementsAre("/c", "/d"));
  EXPECT_EQ(SourceOf("roots"), "/c:/d from environment");
}

TEST_F(SettingsTest, AListOfTheFileIsAnArray) {
  std::ofstream(file_) << "roots = [\"/a\", \"/b\"]\n";
  EXPECT_EQ(Parse({"--config", file_.c_str()}), std::nullopt) << err_;
  EXPECT_THAT(roots_, ElementsAre("/a", "/b"));
  EXPECT_EQ(SourceOf("roots"), "/a:/b from file");
}

TEST_F(SettingsTest, AListOfFlagsReplacesTheEnvironment) {
  setenv("SHOAL_ROOTS", "/c:/d", 1);
  EXPECT_EQ(Parse({"--roots=/e", "--roots", "/f:/g"}), std::nullopt) << err_;
  EXPECT_THAT(roots_, ElementsAre("/e", "/f", "/g"));
  EXPECT_EQ(SourceOf("roots"), "/e:/f:/g from flag");
}

TEST_F(SettingsTest, TheFileMayBeNamedByTheEnvironment) {
  std::ofstream(file_) << "threads = 3\n";
  setenv("SHOAL_CONFIG", file_.c_str(), 1);
  EXPECT_EQ(Parse({}), std::nullopt) << err_;
  EXPECT_EQ(threads_, 3);
  EXPECT_EQ(SourceOf("config"), file_ + " from environment");
}

TEST_F(SettingsTest, ASwitchOfTheEnvironmentCanBeSwitchedOff) {
  setenv("SHOAL_FAST", "true", 1);
  EXPECT_EQ(Parse({"--fast=false"}), std::nullopt) << err_;
  EXPECT_FALSE(fast_);
}

TEST_F(SettingsTest, HelpAndVersionEndWithZero) {
  EXPECT_EQ(Parse({"--help"}), 0);
  EXPECT_THAT(out_, HasSubstr("Tests settings."));
  EXPECT_THAT(out_, HasSubstr("--threads"));
  EXPECT_THAT(out_, HasSubstr("SHOAL_THREADS"));
  EXPECT_THAT(out_, Not(HasSubstr("secret_pid")));
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_EQ(out_, std::string("shoal-test ") + kVersion + "\n");
}

TEST_F(SettingsTest, UsageErrorsEndWith64) {
  EXPECT_EQ(Parse({"--thread=3"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--thread"));
  EXPECT_EQ(Parse({"stray"}), kExitUsage);
  EXPECT_EQ(Parse({"--threads=0"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--threads: Value 0 not in range"));
  EXPECT_EQ(Parse({"--threads=many"}), kExitUsage);
  EXPECT_EQ(Parse({"--format=xml"}), kExitUsage);
  EXPECT_EQ(Parse({"--place=row"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--place: row is no place"));
  EXPECT_EQ(Parse({"--config=/no/such/file"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("/no/such/file"));
  EXPECT_EQ(err_.find("environment"), std::string::npos);
}

TEST_F(SettingsTest, NoFlagTakesNothing) {
  EXPECT_EQ(Parse({"--data_dir="}), kExitUsage);
  EXPECT_EQ(Parse({"--data_dir", ""}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("--data_dir: is empty"));
}

TEST_F(SettingsTest, AnUnknownFlagIsNamedWithTheNearest) {
  EXPECT_EQ(Parse({"--dat_dir=x"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("has no flag `--dat_dir`; did you mean `--data_dir`?"));
}

TEST_F(SettingsTest, AnUnknownFlagIsReportedWithItsAdvice) {
  settings_.AddAdvice("epochs", "look into the job");
  for (const std::vector<const char*>& typed :
       {std::vector<const char*>{"--epochs=3"}, {"--epochs", "3"}, {"3", "--epochs"}}) {
    EXPECT_EQ(Parse(typed), kExitUsage);
    EXPECT_THAT(err_, HasSubstr("has no flag `--epochs`; look into the job\n"));
  }
  EXPECT_EQ(Parse({"--epoch=3"}), kExitUsage);
  EXPECT_THAT(err_, Not(HasSubstr("look into")));
}

TEST_F(SettingsTest, AValueWithoutItsFlagIsToldTheFlag) {
  settings_.SuggestForBareValue("data_dir");
  EXPECT_EQ(Parse({"my data", "--threads=3"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("does not take `my data`; did you mean `--data_dir='my data'`?\n"));
}

TEST_F(SettingsTest, AValueThatCannotBeOfThatFlagIsNot) {
  settings_.SuggestForBareValue("data_dir");
  EXPECT_EQ(Parse({"--data_dir=/a", "/b"}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("does not take `/b`\n"));
}

TEST_F(SettingsTest, ErrorsNameTheVariableThatAValueComesFrom) {
  setenv("SHOAL_FORMAT", "xml", 1);
  EXPECT_EQ(Parse({}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("The value comes from the environment variable SHOAL_FORMAT."));
  setenv("SHOAL_FORMAT", "text", 1);
  setenv("SHOAL_PLACE", "row", 1);
  EXPECT_EQ(Parse({}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("The value comes from the environment variable SHOAL_PLACE."));
}

TEST_F(SettingsTest, ErrorsNameTheFileThatAValueComesFrom) {
  std::ofstream(file_) << "threads = 0\n";
  EXPECT_EQ(Parse({"--config", file_.c_str()}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr("The value comes from the file " + file_ + "."));
  EXPECT_EQ(Parse({"--config", file_.c_str(), "--threads=-1"}), kExitUsage);
  EXPECT_THAT(err_, Not(HasSubstr("The value comes from")));
}

TEST_F(SettingsTest, UnknownNamesInTheFileAreErrors) {
  std::ofstream(file_) << "treads = 3\n";
  EXPECT_EQ(Parse({"--config", file_.c_str()}), kExitUsage);
  EXPECT_THAT(err_, HasSubstr(file_ + ": there is no setting `treads`; did you mean `threads`?"));
}

}  // namespace
}  // namespace shoal
