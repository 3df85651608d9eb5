#include "cli/validation/task_memory.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/validation/validated_job.h"
#include "tests/cli/validation/validation_fixture.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TaskMemoryTest : public ValidationTest {};

TEST_F(TaskMemoryTest, SumsTheMemoryOfTasksOfOneMachine) {
  Write("model.json", DenseModel(1 << 18).dump());
  json root = MinimalJob();
  root["batch_size"] = 16;
  const auto validated = ValidateFiles("", WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  const auto memory = [&](TaskCounts counts) {
    return *MemoryOfAllTasks(validated->job, validated->model, counts, 100);
  };
  const MemoryNeeds one = memory({.ps = 1, .workers = 1}), three = memory({.ps = 1, .workers = 3});
  const std::vector<MemoryNeeds> tasks =
      *MemoryOfTasks(validated->job, validated->model, {.ps = 1, .workers = 1}, 100);
  const uint64_t worker = tasks[2].held_bytes() - tasks[2].program_bytes();
  EXPECT_GT(worker, uint64_t{96} << 20) << "batches";
  EXPECT_EQ(one.held_bytes(), tasks[1].held_bytes() - tasks[1].program_bytes() + worker);
  EXPECT_EQ(three.held_bytes(), one.held_bytes() + 2 * worker);
  EXPECT_EQ(one.max_bytes(), tasks[0].max_bytes() + tasks[1].max_bytes() + tasks[2].max_bytes());
  EXPECT_THAT(three.ToText(), AllOf(HasSubstr(", 3 workers "), HasSubstr("the programs ")));
}

}  // namespace
}  // namespace shoal
