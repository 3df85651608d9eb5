#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/validation/found_data.h"
#include "cli/validation/job_needs.h"
#include "cli/validation/needs_text.h"
#include "cli/validation/task_memory.h"
#include "cli/validation/validated_job.h"
#include "common/loss/keras_loss.h"
#include "tests/common/job/job_files.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A Dense of 6 to `units`: 6 * units + units parameters.
json DenseModel(int units) {
  return {{"class_name", "Sequential"},
          {"config",
           {{"name", "m"},
            {"layers",
             {{{"class_name", "InputLayer"},
               {"config", {{"name", "x"}, {"batch_shape", {nullptr, 6}}}}},
              {{"class_name", "Dense"}, {"config", {{"name", "dense"}, {"units", units}}}}}}}}};
}

// Of an NPY file of bytes, 128 bytes long.
std::string NpyHeader(const std::string& shape) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n";
}

class ValidationTest : public JobFilesTest {
 protected:
  ValidationTest() {
    Write("model.json", DenseModel(10).dump());
    spec_ = Write("spec.json",
                  R"({"cluster": {"chief": ["a:1"], "ps": ["b:1", "c:1"], "worker": ["d:1"]}})");
  }

  std::string spec_;
};

TEST_F(ValidationTest, RejectsASlotWithTheNameOfAVariable) {
  json model = DenseModel(6);
  json& layers = model["config"]["layers"];
  layers.push_back(layers[1]);
  layers[1]["config"]["name"] = "d";
  layers[2]["config"]["name"] = "adam_m/d";
  Write("model.json", model.dump());
  json root = MinimalJob();
  root["optimizer"] = "sgd";
  EXPECT_TRUE(ValidateFiles(spec_, WriteJob(root)).ok());
  root["optimizer"] = "adam";
  const absl::Status status = ValidateFiles(spec_, WriteJob(root)).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("model.json: "), HasSubstr("\"adam_m/d/kernel\""),
                    HasSubstr("variable \"d/kernel\"")));
}

TEST_F(ValidationTest, AnExclusionThatMatchesNoVariableIsRejected) {
  json root = MinimalJob();
  const auto validate = [&](const char* excluded) {
    root["optimizer"] = {{"class_name", "AdamW"},
                         {"config", {{"exclude_from_weight_decay", {excluded}}}}};
    return ValidateFiles(spec_, WriteJob(root)).status();
  };
  EXPECT_TRUE(validate("bias").ok());
  EXPECT_THAT(
      std::string(validate("biases").message()),
      AllOf(HasSubstr("job.json: $.optimizer.config.exclude_from_weight_decay: has \"biases\""),
            HasSubstr("bias, kernel")));
}

TEST_F(ValidationTest, WeightsThatAreMissingAreNamedByTheirField) {
  json root = MinimalJob();
  root["initial_weights"] = "nope.keras";
  EXPECT_THAT(std::string(ValidateFiles(spec_, WriteJob(root)).status().message()),
              AllOf(HasSubstr("$.initial_weights: "), HasSubstr("nope.keras")));
}

TEST_F(ValidationTest, RejectsWhatDoesNotGoWithTheModelsOutput) {
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

TEST_F(ValidationTest, RejectsAModelWithNothingToTrain) {
  json model = DenseModel(6);
  model["config"]["layers"].erase(1);
  model["config"]["layers"].push_back({{"class_name", "Flatten"}, {"config", {{"name", "f"}}}});
  Write("model.json", model.dump());
  EXPECT_THAT(std::string(ValidateFiles(spec_, WriteJob(MinimalJob())).status().message()),
              HasSubstr("model.json: "));
}

TEST_F(ValidationTest, CountsWhatAJobNeeds) {
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

TEST_F(ValidationTest, SaysInWhatMixedLayersAreComputed) {
  const auto text = [&] {
    const auto validated = ValidateFiles(spec_, WriteJob(MinimalJob()));
    EXPECT_TRUE(validated.ok()) << validated.status();
    return NeedsText(*validated, *NeedsOf(*validated, 100), "");
  };
  EXPECT_THAT(text(), Not(HasSubstr("precision")));
  json model = DenseModel(10);
  model["config"]["layers"][1]["config"]["dtype"] = "mixed_bfloat16";
  Write("model.json", model.dump());
  EXPECT_THAT(text(), AllOf(HasSubstr("precision: "), HasSubstr("bfloat16 (layer \"dense\")"),
                            HasSubstr(" float32")));
}

TEST_F(ValidationTest, SaysWhatCompressionComesTo) {
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

TEST_F(ValidationTest, SaysWhatAStrategyMakesOfTheOptimizer) {
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

TEST_F(ValidationTest, SaysWhatLocalStepsCouldDoWithout) {
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

TEST_F(ValidationTest, SaysTheMemoryOfEachTask) {
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

TEST_F(ValidationTest, SumsTheMemoryOfTasksOfOneMachine) {
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

TEST_F(ValidationTest, RejectsAppliedSetsThatTakeMoreThanTheVariables) {
  Write("model.json", DenseModel(1 << 19).dump());
  json root = MinimalJob();
  root["strategy"] = {{"name", "async"}, {"chunk_bytes", 64}, {"window_steps", 1 << 20}};
  const auto validated = ValidateFiles(spec_, WriteJob(root));
  ASSERT_TRUE(validated.ok()) << validated.status();
  EXPECT_THAT(std::string(NeedsOf(*validated, 100).status().message()),
              StartsWith("$.strategy.window_steps: is 1048576, for which the ps keep 128.0 KiB for "
                         "each of 229376 chunks, 28.0 GiB in all, for 14.0 MiB of variables"));
}

TEST_F(ValidationTest, AJobWithoutAClusterStandsAlone) {
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

TEST_F(ValidationTest, LeavesOutStepsWhereTheDataIsNotHere) {
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

TEST_F(ValidationTest, ReportsTheErrorsOfBothFilesAndOfTheModel) {
  Write("spec.json", R"({"cluster": {"chief": ["a"], "ps": ["b:1"], "worker": ["c:1"]}})");
  const std::string job = WriteJob({{"name", "n"}});
  const std::string message(ValidateFiles(spec_, job).status().message());
  EXPECT_THAT(message, StartsWith(spec_ + ": $.cluster.chief[0]: is \"a\""));
  EXPECT_THAT(message, HasSubstr(absl::StrCat("\n", job, ": $.model: ")));

  json model = DenseModel(10);
  model["config"]["layers"][1]["class_name"] = "Dens";
  Write("model.json", model.dump());
  const std::string model_message(ValidateFiles(spec_, WriteJob(MinimalJob())).status().message());
  EXPECT_THAT(model_message, HasSubstr("$.cluster.chief[0]"));
  EXPECT_THAT(model_message, HasSubstr(absl::StrCat("\n", (directory_ / "model.json").string(),
                                                    ": $.config.layers[1]")));
  EXPECT_THAT(model_message, HasSubstr("Dens"));

  model["config"]["layers"][0]["config"]["batch_shape"] = "wide";
  Write("model.json", model.dump());
  const std::string both(ValidateFiles("", WriteJob(MinimalJob())).status().message());
  const std::vector<std::string> lines = absl::StrSplit(both, '\n');
  EXPECT_EQ(lines.size(), 2u) << both;
  for (const std::string& line : lines) {
    EXPECT_THAT(line, StartsWith((directory_ / "model.json").string() + ": $.config.layers["));
  }
}

TEST_F(ValidationTest, ALabelThatIsNoClassIsNamedByFileAndIndex) {
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
TEST_F(ValidationTest, SaysWhichLabelsItHasNotLookedAt) {
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

// 7 numbers an example, and what says whether it is there.
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

TEST_F(ValidationTest, ACacheInMemoryCountsAmongWhatAWorkerNeeds) {
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
