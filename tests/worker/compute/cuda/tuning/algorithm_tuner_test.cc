// The choice among plans, with plans and times that are made up.

#include "worker/compute/cuda/tuning/algorithm_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/common/base/temporary_directory.h"

namespace shoal::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct FakePlan {
  int64_t number;
  std::string choice() const { return absl::StrCat(number); }
};

class AlgorithmTunerTest : public ::testing::Test {
 protected:
  AlgorithmTuner::Options Options() {
    return {.cache_path = directory_ / "plans",
            .gpu = "NVIDIA H100 90 132",
            .demands = "tf32=0",
            .on_warning = [this](const std::string& text) { warnings_.push_back(text); }};
  }
  // Plans 0, 1, ... with these times; a negative one cannot be measured.
  AlgorithmOffer<FakePlan> Offer(const std::vector<double>& seconds) {
    AlgorithmOffer<FakePlan> offer = {.libraries = "cuDNN 9.19.0", .work = "forward"};
    offer.make = [this,
                  count = seconds.size()](const std::string& choice) -> absl::StatusOr<FakePlan> {
      ++made_;
      int64_t number = -1;
      if (!absl::SimpleAtoi(choice, &number) || number >= static_cast<int64_t>(count)) {
        return absl::NotFoundError("no such");
      }
      return FakePlan{number};
    };
    offer.suggest = [this,
                     count = seconds.size()](size_t max) -> absl::StatusOr<std::vector<FakePlan>> {
      if (count == 0) return absl::UnimplementedError("no engine");
      std::vector<FakePlan> plans;
      for (size_t i = 0; i < std::min(max, count); ++i) {
        plans.push_back({static_cast<int64_t>(i)});
      }
      suggested_ = plans.size();
      return plans;
    };
    offer.measure = [this, seconds](FakePlan& plan) -> absl::StatusOr<AlgorithmTrial> {
      measured_.push_back(plan.number);
      if (seconds[plan.number] < 0) return absl::ResourceExhaustedError("no memory");
      return AlgorithmTrial{seconds[plan.number]};
    };
    return offer;
  }
  absl::StatusOr<int64_t> Choose(const AlgorithmOffer<FakePlan>& offer) {
    const auto plan = ChooseAlgorithm(&tuner_, offer);
    if (!plan.ok()) return plan.status();
    return plan->number;
  }

  // What was measured to choose by.
  std::vector<int64_t> compared() const {
    return {measured_.begin() + std::min<size_t>(measured_.size(), kWarmUps), measured_.end()};
  }

  const TemporaryDirectory directory_;
  int made_ = 0;
  size_t suggested_ = 0;
  std::vector<int64_t> measured_;
  std::vector<std::string> warnings_;
  AlgorithmTuner tuner_{Options()};
};

TEST_F(AlgorithmTunerTest, MeasuresOnceAndTakesTheFastest) {
  EXPECT_EQ(*Choose(Offer({3, 2, 1, 2})), 2);
  EXPECT_THAT(compared(), ElementsAre(0, 1, 2, 3));
  // The next one knows, and so does another process.
  EXPECT_EQ(*Choose(Offer({3, 2, 1, 2})), 2);
  AlgorithmTuner other(Options());
  EXPECT_EQ(ChooseAlgorithm(&other, Offer({3, 2, 1, 2}))->number, 2);
  EXPECT_EQ(compared().size(), 4u);
  EXPECT_EQ(made_, 2);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(AlgorithmTunerTest, AnotherQuestionIsAnotherMeasurement) {
  EXPECT_EQ(*Choose(Offer({3, 1})), 1);
  AlgorithmOffer<FakePlan> other_work = Offer({1, 3}), other_libraries = other_work;
  other_work.work = "backward";
  other_libraries.libraries = "cuDNN 9.20.0";
  EXPECT_EQ(*Choose(other_work), 0);
  EXPECT_EQ(*Choose(other_libraries), 0);
  for (std::string AlgorithmTuner::Options::*field :
       {&AlgorithmTuner::Options::gpu, &AlgorithmTuner::Options::demands}) {
    AlgorithmTuner::Options options = Options();
    options.*field += "1";
    AlgorithmTuner other(options);
    EXPECT_EQ(ChooseAlgorithm(&other, Offer({1, 3}))->number, 0);
  }
  EXPECT_EQ(measured_.size(), 10u + 3 * kWarmUps);
}

// The first would otherwise be measured at the clocks of a GPU that was idle.
TEST_F(AlgorithmTunerTest, WarmsUpBeforeTheFirstIsMeasured) {
  int runs = 0;
  AlgorithmOffer<FakePlan> offer = Offer({1, 2});
  offer.measure = [&](FakePlan& plan) -> absl::StatusOr<AlgorithmTrial> {
    return AlgorithmTrial{(++runs == 1 ? 10.0 : 1.0) * static_cast<double>(plan.number + 1)};
  };
  EXPECT_EQ(*Choose(offer), 0);
  EXPECT_EQ(runs, kWarmUps + 2);
}

TEST_F(AlgorithmTunerTest, MeasuresAFewAlone) {
  std::vector<double> seconds(2 * kMeasuredAlgorithms, 2);
  seconds[kMeasuredAlgorithms - 1] = 1;
  seconds[kMeasuredAlgorithms] = 0;
  EXPECT_EQ(*Choose(Offer(seconds)), static_cast<int64_t>(kMeasuredAlgorithms) - 1);
  EXPECT_EQ(compared().size(), kMeasuredAlgorithms);
}

// However fast it is.
TEST_F(AlgorithmTunerTest, APlanThatDisagreesWithMostIsNotTaken) {
  AlgorithmOffer<FakePlan> offer = Offer({3, 1, 2, 4});
  offer.measure = [measure = offer.measure](FakePlan& plan) {
    absl::StatusOr<AlgorithmTrial> trial = measure(plan);
    trial->tolerance = 0.01;
    trial->sample = {1, 2, plan.number == 1 ? 3.0f : 4.0f};
    return trial;
  };
  EXPECT_EQ(*Choose(offer), 2);
}

TEST_F(AlgorithmTunerTest, APlanWithWrongResultsIsNotTaken) {
  const auto offer_of = [&](const std::vector<int64_t>& wrong, std::vector<double> seconds) {
    AlgorithmOffer<FakePlan> offer = Offer(seconds);
    offer.measure = [=, measure = offer.measure](FakePlan& plan) -> absl::StatusOr<AlgorithmTrial> {
      if (std::ranges::count(wrong, plan.number) > 0) return absl::DataLossError("wrong");
      return measure(plan);
    };
    return offer;
  };
  EXPECT_EQ(*Choose(offer_of({1}, {3, 1, 2})), 2);
  AlgorithmOffer<FakePlan> none = offer_of({0, 1}, {3, 1});
  none.work = "backward";
  EXPECT_EQ(Choose(none).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(Choose(none).status().message()),
              AllOf(HasSubstr("cuDNN 9.19.0"), HasSubstr("backward")));
  // The first, where none of the others can be measured, is not one of those.
  AlgorithmOffer<FakePlan> unmeasured = offer_of({0}, {3, -1, -1});
  unmeasured.work = "forward of another";
  EXPECT_EQ(*Choose(unmeasured), 1);
  // Without a tuner, if it is asked for.
  AlgorithmOffer<FakePlan> checked = offer_of({0, 1}, {1, 2, 3, 4});
  EXPECT_EQ(ChooseAlgorithm(nullptr, checked)->number, 0);
  checked.checked = true;
  EXPECT_EQ(ChooseAlgorithm(nullptr, checked)->number, 2);
  AlgorithmOffer<FakePlan> none_checked = offer_of({0, 1}, {1, 2});
  none_checked.checked = true;
  EXPECT_EQ(ChooseAlgorithm(nullptr, none_checked).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(AlgorithmTunerTest, TheFirstOfEqualPlansIsTaken) { EXPECT_EQ(*Choose(Offer({2, 1, 1})), 1); }

TEST_F(AlgorithmTunerTest, PassesOverWhatCannotBeMeasured) {
  EXPECT_EQ(*Choose(Offer({-1, 5, 4, -1})), 2);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(AlgorithmTunerTest, TakesTheFirstWhereNothingCanBeMeasuredAndKeepsNothing) {
  EXPECT_EQ(*Choose(Offer({-1, -1})), 0);
  EXPECT_EQ(*Choose(Offer({-1, -1})), 0);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no memory")));
  // One more to warm up.
  EXPECT_EQ(measured_.size(), 5u);
}

// Nothing that the clock has said before is taken either.
TEST_F(AlgorithmTunerTest, WithoutATunerItIsTheFirstEachTime) {
  ASSERT_EQ(*Choose(Offer({3, 1})), 1);
  EXPECT_EQ(ChooseAlgorithm(nullptr, Offer({3, 1}))->number, 0);
  EXPECT_EQ(suggested_, 1u);
  EXPECT_EQ(made_, 0);
  EXPECT_EQ(compared().size(), 2u);
}

TEST_F(AlgorithmTunerTest, AnInvalidCachedChoiceIsMeasuredAgain) {
  ASSERT_EQ(*Choose(Offer({4, 3, 2, 1})), 3);
  EXPECT_EQ(*Choose(Offer({3, 1})), 1);
  EXPECT_EQ(*Choose(Offer({3, 1})), 1);
  EXPECT_EQ(compared().size(), 6u);
}

TEST_F(AlgorithmTunerTest, SaysThatAChoiceCannotBeKept) {
  AlgorithmTuner::Options options = Options();
  options.cache_path = "/proc/nowhere/plans";
  AlgorithmTuner nowhere(options);
  EXPECT_EQ(ChooseAlgorithm(&nowhere, Offer({3, 1}))->number, 1);
  EXPECT_THAT(warnings_,
              ElementsAre(AllOf(HasSubstr("/proc/nowhere"), HasSubstr("XDG_CACHE_HOME"))));
}

TEST_F(AlgorithmTunerTest, SaysThatTheFileIsDamaged) {
  std::ofstream(directory_ / "plans") << "A letter.\n";
  AlgorithmTuner tuner(Options());
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("is ignored")));
}

TEST_F(AlgorithmTunerTest, WhereThereIsNoPlanTheErrorSaysWhy) {
  EXPECT_EQ(Choose(Offer({})).status(), absl::UnimplementedError("no engine"));
}

}  // namespace
}  // namespace shoal::cuda
