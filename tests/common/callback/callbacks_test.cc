#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/callback/callback.h"
#include "common/json/json_errors.h"
#include "common/optimizer/schedules/schedule_table.h"
#include "tests/common/json/documented_rows.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(CallbackDocsTest, TheDocumentsTableIsMadeOfThem) {
  EXPECT_THAT(DocumentedRows("common/callback/callback.cc"), ElementsAreArray(CallbackDocs()));
}

class CallbacksTest : public testing::Test {
 protected:
  std::vector<Callback> Read(const std::string& text) {
    JsonErrors errors("job.json");
    std::vector<Callback> callbacks = ReadCallbacks(
        json::parse(text), "$.callbacks", {{"val_loss", false}, {"val_accuracy", true}}, &errors);
    error_ = errors.empty() ? "" : std::string(errors.ToStatus().message());
    return callbacks;
  }
  std::string ErrorOf(const std::string& text) {
    Read(text);
    return error_;
  }

  std::string error_;
};

TEST_F(CallbacksTest, APlainNameHasTheDefaultsOfKeras) {
  const std::vector<Callback> callbacks = Read(R"(["EarlyStopping"])");
  EXPECT_THAT(error_, IsEmpty());
  ASSERT_THAT(callbacks, SizeIs(1));
  const MetricMonitor::Options& monitor = callbacks[0].monitor;
  EXPECT_EQ(monitor.figure, "val_loss");
  EXPECT_FALSE(monitor.maximize);
  EXPECT_EQ(monitor.min_delta, 0);
  EXPECT_EQ(monitor.patience, 0u);
  EXPECT_EQ(monitor.baseline, std::nullopt);
  EXPECT_EQ(monitor.start_from_epoch, 0u);
  EXPECT_FALSE(callbacks[0].restores_best);
}

TEST_F(CallbacksTest, TheModeFollowsFromTheFigure) {
  const std::string text =
      R"([{"class_name": "EarlyStopping", "config": {"monitor": "val_accuracy", "patience": 3}},
          {"class_name": "ModelCheckpoint", "config": {"filepath": "best.keras", "mode": "max",
           "save_best_only": true, "save_freq": "epoch", "initial_value_threshold": 0.5}}])";
  const std::vector<Callback> callbacks = Read(text);
  EXPECT_THAT(error_, IsEmpty());
  ASSERT_THAT(callbacks, SizeIs(2));
  EXPECT_TRUE(callbacks[0].monitor.maximize);
  EXPECT_EQ(callbacks[0].monitor.patience, 3u);
  EXPECT_TRUE(callbacks[1].monitor.maximize) << "as it is given";
  EXPECT_EQ(callbacks[1].monitor.patience, std::nullopt) << "it ends nothing";
  EXPECT_EQ(callbacks[1].monitor.threshold, 0.5);
}

TEST_F(CallbacksTest, ReadCallbacksReadBackAsTheSame) {
  const std::vector<Callback> callbacks = Read(
      R"([{"class_name": "EarlyStopping", "config": {"monitor": "val_accuracy", "baseline": 0.5,
           "min_delta": 0.01, "restore_best_weights": true, "start_from_epoch": 2}},
          {"class_name": "ModelCheckpoint", "config": {"save_best_only": true}}])");
  ASSERT_THAT(callbacks, SizeIs(2));
  const std::vector<Callback> again =
      Read("[" + callbacks[0].config + "," + callbacks[1].config + "]");
  EXPECT_THAT(error_, IsEmpty());
  ASSERT_THAT(again, SizeIs(2));
  EXPECT_EQ(again[0].config, callbacks[0].config);
  EXPECT_EQ(again[1].config, callbacks[1].config);
  EXPECT_TRUE(again[0].restores_best);
}

TEST_F(CallbacksTest, AWrongOptionIsNamed) {
  EXPECT_THAT(ErrorOf(R"("EarlyStopping")"), HasSubstr("$.callbacks: is \"EarlyStopping\""));
  EXPECT_THAT(ErrorOf(R"([{"class_name": "EarlyStopping", "config": {"monitor": "val_acc"}}])"),
              AllOf(HasSubstr("$.callbacks[0].config.monitor: is \"val_acc\""),
                    HasSubstr("val_loss, val_accuracy")));
  EXPECT_THAT(ErrorOf(R"([{"class_name": "EarlyStopping", "config": {"monitor": "loss"}}])"),
              HasSubstr("$.callbacks[0].config.monitor: is \"loss\""));
  EXPECT_THAT(ErrorOf(R"([{"class_name": "EarlyStopping", "config": {"mode": "up"}}])"),
              HasSubstr("mode: is \"up\""));
  EXPECT_THAT(ErrorOf(R"([{"class_name": "EarlyStopping", "config": {"patience": -1}}])"),
              HasSubstr("patience: is -1"));
  EXPECT_THAT(ErrorOf(R"([{"class_name": "EarlyStopping", "config": {"patiens": 1}}])"),
              HasSubstr("patiens"));
  EXPECT_THAT(
      ErrorOf(R"([{"class_name": "ModelCheckpoint", "config": {"save_best_only": false}}])"),
      HasSubstr("save_best_only: is false"));
  EXPECT_THAT(ErrorOf(R"([{"class_name": "ModelCheckpoint", "config": {"save_freq": 100}}])"),
              HasSubstr("save_freq: is 100"));
  EXPECT_THAT(ErrorOf(R"(["EarlyStopping", "EarlyStopping"])"), HasSubstr("$.callbacks[1]: "));
}

TEST_F(CallbacksTest, ACallbackThatIsLackingIsNamedWithWhatIsThereInstead) {
  EXPECT_THAT(ErrorOf(R"([{"class_name": "ReduceLROnPlateau", "config": {"factor": 0.1}}])"),
              HasSubstr("$.callbacks[0].class_name: is \"ReduceLROnPlateau\""));
  for (const std::string& schedule : ScheduleTable().Names()) {
    EXPECT_THAT(ErrorOf(R"(["ReduceLROnPlateau"])"), HasSubstr(schedule));
    EXPECT_THAT(ErrorOf(R"(["LearningRateScheduler"])"), HasSubstr(schedule));
  }
  EXPECT_THAT(ErrorOf(R"(["TerminateOnNaN"])"), HasSubstr("$.stop_after_nan_steps"));
  EXPECT_THAT(ErrorOf(R"(["EarlyStoping"])"), HasSubstr("EarlyStopping"));
}

}  // namespace
}  // namespace shoal
