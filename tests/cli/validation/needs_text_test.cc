#include "cli/validation/needs_text.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "cli/validation/found_data.h"
#include "cli/validation/job_needs.h"
#include "cli/validation/validated_job.h"
#include "tests/cli/validation/validation_fixture.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class NeedsTextTest : public ValidationTest {};

TEST_F(NeedsTextTest, SaysInWhatMixedLayersAreComputed) {
  const auto text = [&] {
    const auto validated = ValidateFiles(spec_, WriteJob(MinimalJob()));
    EXPECT_TRUE(validated.ok()) << validated.status();
    return NeedsText(*validated, *NeedsOf(*validated, 100), "");
  };
  EXPECT_THAT(text(), Not(HasSubstr("precision")));
  json model = DenseModel(10);
  model["config"]["layers"][1]["config"]["dtype"] = "mixed_float16";
  Write("model.json", model.dump());
  EXPECT_THAT(text(), AllOf(HasSubstr("precision: "), HasSubstr("float16 (layer \"dense\")"),
                            HasSubstr(" float32")));
}

TEST_F(NeedsTextTest, SaysWhatCompressionComesTo) {
  Write("model.json", DenseModel(1 << 18).dump());
  json root = MinimalJob();
  const auto text = [&] {
    const auto validated = ValidateFiles(spec_, WriteJob(root));
    EXPECT_TRUE(validated.ok()) << validated.status();
    return NeedsText(*validated, *NeedsOf(*validated, 100), "");
  };
  EXPECT_THAT(text(), AllOf(Not(HasSubstr("compress")), Not(HasSubstr("gradients 1."))));
  root["compression"] = {{"push", "int8"}};
  EXPECT_THAT(text(), AllOf(HasSubstr("compression: a step pushes int8, 1.8 MiB instead of 7.0 "
                                      "MiB, and pulls float32, 7.0 MiB\n"),
                            HasSubstr("compressed gradients 1.8 MiB")));
  root["compression"] = {{"push", "top_k"}, {"pull", "bf16"}};
  EXPECT_THAT(text(), AllOf(HasSubstr("and pulls bf16, 3.5 MiB instead of 7.0 MiB\n"),
                            HasSubstr("compressed gradients 7.1 MiB")))
      << "with what is left out";
}

TEST_F(NeedsTextTest, SaysWhatAStrategyMakesOfTheOptimizer) {
  spec_ = Write("spec.json", R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"],
                                             "worker": ["d:1", "e:1", "f:1", "g:1"]}})");
  json root = MinimalJob();
  const auto text = [&](const json& strategy) {
    root["strategy"] = strategy;
    const auto validated = ValidateFiles(spec_, WriteJob(root));
    EXPECT_TRUE(validated.ok()) << validated.status();
    return NeedsText(*validated, *NeedsOf(*validated, 100), "");
  };
  EXPECT_THAT(text("async"), AllOf(Not(HasSubstr("learning rate")), Not(HasSubstr("momentum"))));
  EXPECT_THAT(
      text({{"name", "async"}, {"scale_learning_rate", "linear"}, {"warmup_steps", 50}}),
      AllOf(HasSubstr("learning rate: the optimizer's, times 4"), HasSubstr(" 50 updates\n")));
  EXPECT_THAT(text({{"name", "sync"}, {"scale_learning_rate", "sqrt"}}),
              HasSubstr("learning rate: the optimizer's, times 2\n"));
  root["optimizer"] = {{"class_name", "SGD"},
                       {"config", {{"learning_rate", 0.1}, {"momentum", 0.9}}}};
  EXPECT_THAT(text({{"name", "async"}, {"momentum_by_workers", true}}),
              AllOf(HasSubstr("momentum: momentum is 0.7 with 4 workers"), HasSubstr(" 0.9\n")));
  EXPECT_THAT(text({{"name", "async"}, {"look_ahead", 3}}), Not(HasSubstr("look_ahead")));
  EXPECT_THAT(
      text({{"name", "async"}, {"look_ahead", 70}}),
      AllOf(HasSubstr("$.strategy.look_ahead: 70"), HasSubstr(" 4 listed workers it would be 3")));
  EXPECT_THAT(text({{"name", "async"}, {"scale_learning_rate", "linear"}, {"workers", 64}}),
              HasSubstr("$.strategy.workers: 64"));
}

TEST_F(NeedsTextTest, SaysWhatLocalStepsCouldDoWithout) {
  spec_ = Write("spec.json",
                R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"], "worker": ["d:1", "e:1"]}})");
  json root = MinimalJob();
  root["batch_size"] = 10;
  const auto text = [&](int batches, int gradients = 0) {
    root["strategy"] = {{"name", "local"}, {"batches_per_step", batches}};
    if (gradients > 0) root["strategy"]["gradients_per_update"] = gradients;
    const auto validated = ValidateFiles(spec_, WriteJob(root));
    EXPECT_TRUE(validated.ok()) << validated.status();
    return NeedsText(*validated, *NeedsOf(*validated, 100), "");
  };
  EXPECT_THAT(
      text(5),
      AllOf(HasSubstr("compression: none, a step pushes and pulls 280 B each; $.compression "
                      "{\"push\": \"int8\", \"pull\": \"bf16\"}"),
            Not(HasSubstr("batches_per_step"))));
  EXPECT_THAT(text(10), Not(HasSubstr("batches_per_step"))) << "of the next epoch there are more";
  EXPECT_THAT(text(10, 1), HasSubstr("$.strategy.batches_per_step: 10 of an epoch of 10 batches: "
                                     "1 step for 2 workers"));
  EXPECT_THAT(text(11),
              HasSubstr("$.strategy.batches_per_step: 11, but an epoch has only 10 batches"));
  root["compression"] = {{"push", "int8"}};
  EXPECT_THAT(text(10), Not(HasSubstr("compression: none")));
}

TEST_F(NeedsTextTest, SaysTheMemoryOfEachTask) {
  Write("model.json", DenseModel(1 << 18).dump());
  json root = MinimalJob();
  root["optimizer"] = "adam";
  root["batch_size"] = 16;
  const auto validated = ValidateFiles(spec_, WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  const JobNeeds needs = *NeedsOf(*validated, 100);
  ASSERT_EQ(needs.memory.size(), 4u);
  EXPECT_EQ(needs.memory[0].task, "coordinator");
  EXPECT_EQ(needs.memory[2].task, "ps 1");
  EXPECT_EQ(needs.memory[3].task, "worker");
  const std::string text = NeedsText(*validated, needs, "");
  // 7 MiB of variables over two ps; a batch is 16 examples of 2^18 outputs.
  EXPECT_THAT(text, ContainsRegex("\n  ps 1: [0-9.]+ MiB \\(variables 3.5 MiB, slots 7.0 MiB, "));
  EXPECT_THAT(text, HasSubstr("(with copies for a checkpoint 10.5 MiB, sending 3.5 MiB, "));
  EXPECT_THAT(text, ContainsRegex("\n  worker: [0-9.]+ MiB \\(parameters 7.0 MiB, gradients 7.0 "
                                  "MiB, activations [1-9][0-9.]+ MiB, batches 96.0 MiB, "));
}

TEST_F(NeedsTextTest, ACacheInMemoryCountsAmongWhatAWorkerNeeds) {
  json root = MinimalJob();
  root["data"]["training"]["cache"] = "memory";
  constexpr uint64_t kExamples = 1 << 20;
  for (const auto& [name, shape, bytes] :
       {std::tuple("x.npy", absl::StrCat("(", kExamples, ", 6)"), kExamples * 6),
        {"y.npy", absl::StrCat("(", kExamples, ", 10)"), kExamples * 10}}) {
    const std::string path = Write(name, NpyHeader(shape));
    std::filesystem::resize_file(path, 128 + bytes);
  }
  unsetenv("TF_CONFIG");
  const auto validated = ValidateFiles("", WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  const auto found = CheckData(validated->job, validated->model);
  ASSERT_TRUE(found.ok()) << found.status();
  const auto needs = NeedsOf(*validated, found->training_examples, found->memory);
  EXPECT_THAT(NeedsText(*validated, *needs, ""), HasSubstr(", data 65.0 MiB, "));
}

}  // namespace
}  // namespace shoal
