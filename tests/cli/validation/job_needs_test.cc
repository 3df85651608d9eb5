#include "cli/validation/job_needs.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/validation/needs_text.h"
#include "cli/validation/validated_job.h"
#include "tests/cli/validation/validation_fixture.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class JobNeedsTest : public ValidationTest {};

TEST_F(JobNeedsTest, CountsWhatAJobNeeds) {
  json root = MinimalJob();
  root["optimizer"] = "adam";
  root["batch_size"] = 64;
  root["epochs"] = 3;
  const auto validated = ValidateFiles(spec_, WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  const JobNeeds needs = *NeedsOf(*validated, 100);
  EXPECT_EQ(needs.trainable_parameters, 70);
  EXPECT_EQ(needs.other_parameters, 0);
  EXPECT_EQ(needs.variable_bytes, 280);
  EXPECT_EQ(needs.slot_bytes, 560);
  EXPECT_EQ(needs.steps_per_epoch, 2u);
  EXPECT_EQ(needs.total_steps, 6u);
  ASSERT_EQ(needs.ps.size(), 2u);
  int64_t variable_bytes = 0;
  int64_t slot_bytes = 0;
  for (const JobNeeds::Ps& ps : needs.ps) {
    variable_bytes += ps.variable_bytes;
    slot_bytes += ps.slot_bytes;
    EXPECT_EQ(ps.slot_bytes, 2 * ps.variable_bytes);
  }
  EXPECT_EQ(variable_bytes, 280);
  EXPECT_EQ(slot_bytes, 560);
  const std::string text = NeedsText(*validated, needs, "");
  EXPECT_THAT(text, HasSubstr("cluster: 1 coordinator, 2 ps, 1 worker\n"));
  EXPECT_THAT(text,
              HasSubstr("parameters: 70 trainable, 0 other (280 B), optimizer slots 560 B\n"));
  EXPECT_THAT(text, HasSubstr("ps 1 at c:1: variables "));
  EXPECT_THAT(text, HasSubstr("steps: 6, each of 64 examples; 2 an epoch of 100 examples\n"));
  EXPECT_THAT(NeedsText(*validated, *NeedsOf(*validated, 50), ""),
              AllOf(HasSubstr("steps: 3, each of 50 examples; 1 an epoch of 50 examples"),
                    HasSubstr("batch_size of 64\n")));
}

TEST_F(JobNeedsTest, AJobWithoutAClusterStandsAlone) {
  unsetenv("TF_CONFIG");
  const auto validated = ValidateFiles("", WriteJob(MinimalJob()));
  ASSERT_TRUE(validated.ok()) << validated.status();
  const JobNeeds needs = *NeedsOf(*validated, 100);
  EXPECT_EQ(needs.variable_bytes, 280);
  EXPECT_THAT(needs.ps, IsEmpty());
  EXPECT_EQ(needs.memory.size(), 3u) << "as if there were one ps";
  EXPECT_THAT(NeedsText(*validated, needs, ""), StartsWith("cluster: none was given"));
  // A variable that is set is meant.
  setenv("TF_CONFIG", "{}", 1);
  EXPECT_THAT(std::string(ValidateFiles("", WriteJob(MinimalJob())).status().message()),
              StartsWith("TF_CONFIG: $.cluster"));
  unsetenv("TF_CONFIG");
}

TEST_F(JobNeedsTest, LeavesOutStepsWhereTheDataIsNotHere) {
  json root = MinimalJob();
  auto validated = ValidateFiles(spec_, WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_THAT(
      NeedsText(*validated, *NeedsOf(*validated, std::nullopt), "/x.npy is missing"),
      HasSubstr("steps: those of 1 epoch; their number is unknown here: /x.npy is missing\n"));
  root.erase("epochs");
  root["steps"] = 7;
  validated = ValidateFiles(spec_, WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_EQ(NeedsOf(*validated, std::nullopt)->total_steps, 7u);
}

TEST_F(JobNeedsTest, RejectsAppliedSetsThatTakeMoreThanTheVariables) {
  Write("model.json", DenseModel(1 << 19).dump());
  json root = MinimalJob();
  root["strategy"] = {{"name", "async"}, {"chunk_bytes", 64}, {"window_steps", 1 << 20}};
  const auto validated = ValidateFiles(spec_, WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_THAT(std::string(NeedsOf(*validated, 100).status().message()),
              StartsWith("$.strategy.window_steps: is 1048576, for which the ps keep 128.0 KiB for "
                         "each of 229376 chunks, 28.0 GiB in all, for 14.0 MiB of variables"));
}

}  // namespace
}  // namespace shoal
