#include "common/job/job.h"

#include <gmock/gmock.h>

#include "common/base/crc32c.h"
#include "tests/common/job/job_loading_fixture.h"

namespace shoal {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class JobTest : public JobLoadingTest {};

TEST_F(JobTest, FillsDefaults) {
  const Job job = Load(MinimalJob());
  EXPECT_EQ(job.name, "tiny");
  EXPECT_EQ(job.model_path, (directory_ / "model.json").string());
  EXPECT_THAT(job.model_json, HasSubstr("Sequential"));
  EXPECT_EQ(job.training.images, (directory_ / "x.npy").string());
  EXPECT_TRUE(job.test.empty());
  EXPECT_EQ(job.loss, R"({"class_name":"MeanSquaredError","config":{}})");
  EXPECT_TRUE(job.metrics.empty());
  EXPECT_THAT(job.optimizer, HasSubstr(R"("learning_rate":0.01,"momentum":0.0,)"));
  EXPECT_EQ(job.batch_size, 32);
  EXPECT_EQ(job.epochs, 1u);
  EXPECT_EQ(job.steps, 0u);
  EXPECT_EQ(job.strategy.name, "async");
  EXPECT_EQ(job.checkpoint.every_seconds, 600);
  EXPECT_EQ(job.checkpoint.keep, 3);
}

// The job's text names its files, and is JSON that other tasks read.
TEST_F(JobTest, AFolderWhosePathIsNotUtf8IsRejected) {
  const std::filesystem::path folder = directory_ / "a\xff";
  std::filesystem::create_directory(folder);
  WriteJob(MinimalJob());
  for (const char* file : {"model.json", "job.json"})
    std::filesystem::copy(directory_ / file, folder / file);
  for (const bool check_data : {false, true}) {
    const absl::Status status = LoadJob((folder / "job.json").string(), check_data).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    const std::string message(status.message());
    EXPECT_THAT(message, HasSubstr("$.data.training.images: "));
    EXPECT_THAT(message, HasSubstr("$.model: "));
    EXPECT_THAT(message, HasSubstr("a\\xff/x.npy"));
  }
  std::filesystem::rename(folder, directory_ / "Größe");
  const auto job = LoadJob((directory_ / "Größe" / "job.json").string(), /*check_data=*/false);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->training.images, EndsWith("/Größe/x.npy"));
  const auto again = ParseResolvedJob(job->ResolvedText(), "there");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->training.images, job->training.images);
}

TEST_F(JobTest, ReadsEveryField) {
  json root = MinimalJob();
  root["data"]["test"] = {{"images", "../t.npy"}, {"labels", "/abs//l.npy"}};
  root["metrics"] = {"accuracy"};
  root.erase("epochs");
  root["steps"] = 500;
  root["batch_size"] = 64;
  root["micro_batch_size"] = 16;
  root["strategy"] = {
      {"name", "async"},    {"min_shard_bytes", 1024},           {"chunk_bytes", 4096},
      {"window_steps", 8},  {"lease_timeout_seconds", 1.5},      {"speculate_after", 2.5},
      {"max_staleness", 0}, {"learning_rate_by_staleness", true}};
  root["compression"] = {{"push", {{"name", "top_k"}}}, {"pull", "bf16"}};
  root["checkpoint"] = {{"every_steps", 100}, {"every_seconds", 30}, {"keep", 2}};
  root["seed"] = 7;
  root["weighted_metrics"] = {"accuracy", "mae"};
  root["class_weight"] = {{"1", 2.5}, {"0", 1}};
  root["data"]["training"]["weights"] = "w.npy";
  const Job job = Load(root);
  EXPECT_THAT(job.weighted_metrics,
              ElementsAre(R"({"class_name":"Accuracy","config":{"name":"weighted_accuracy"}})",
                          HasSubstr(R"("name":"mae")")));
  EXPECT_EQ(job.class_weight, (std::map<int64_t, double>{{0, 1}, {1, 2.5}}));
  EXPECT_EQ(job.training.weights, (directory_ / "w.npy").string());
  const auto again = ParseResolvedJob(job.ResolvedText(), "again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ResolvedText(), job.ResolvedText());
  EXPECT_EQ(job.test.images, (directory_.parent_path() / "t.npy").string());
  EXPECT_EQ(job.test.labels, "/abs/l.npy");
  EXPECT_THAT(job.metrics, ElementsAre("accuracy"));
  EXPECT_EQ(job.steps, 500u);
  EXPECT_EQ(job.epochs, 0u);
  EXPECT_EQ(job.batch_size, 64);
  EXPECT_EQ(job.micro_batch_size, 16);
  EXPECT_EQ(job.strategy.min_shard_bytes, 1024);
  EXPECT_EQ(job.strategy.chunk_bytes, 4096);
  EXPECT_EQ(job.strategy.window_steps, 8u);
  EXPECT_EQ(job.strategy.lease_timeout_seconds, 1.5);
  EXPECT_EQ(job.strategy.speculate_after, 2.5);
  EXPECT_EQ(job.strategy.max_staleness, 0u);
  EXPECT_TRUE(job.strategy.learning_rate_by_staleness);
  EXPECT_EQ(job.compression.push, R"({"fraction":0.01,"name":"top_k"})");
  EXPECT_EQ(job.compression.pull, "bf16");
  EXPECT_EQ(job.checkpoint.every_steps, 100u);
  EXPECT_EQ(job.checkpoint.every_seconds, 30);
  EXPECT_EQ(job.checkpoint.keep, 2);
  EXPECT_EQ(job.seed, 7u);
}

// As keras.src.trainers.compile_utils has it: get_metric() and CompileMetrics.get_result().
TEST_F(JobTest, AccuracyByBothItsWordsIsCalledByEach) {
  const std::string acc = R"({"class_name":"Accuracy","config":{"name":"acc"}})";
  const auto metrics = [this](const char* plain, const char* weighted) {
    json root = MinimalJob();
    root["data"]["test"] = root["data"]["training"];
    root["metrics"] = {"mae", plain};
    root["weighted_metrics"] = {weighted, "mae"};
    root["callbacks"] = {
        {{"class_name", "EarlyStopping"}, {"config", {{"monitor", "val_accuracy"}}}}};
    const Job job = Load(root);
    EXPECT_THAT(job.metrics[0], HasSubstr(R"("name":"mae")"));
    EXPECT_THAT(job.weighted_metrics[1], HasSubstr(R"("name":"weighted_mae")"));
    const auto again = ParseResolvedJob(job.ResolvedText(), "again");
    EXPECT_EQ(again.ok() ? again->ResolvedText() : again.status().ToString(), job.ResolvedText());
    return std::pair(job.metrics[1], job.weighted_metrics[0]);
  };
  EXPECT_EQ(metrics("acc", "accuracy"), std::pair(acc, std::string("accuracy")));
  EXPECT_EQ(metrics("accuracy", "acc"), std::pair(std::string("accuracy"), acc));
  const std::string weighted = R"({"class_name":"Accuracy","config":{"name":"weighted_accuracy"}})";
  EXPECT_EQ(metrics("acc", "acc"), std::pair(std::string("accuracy"), weighted));
}

TEST_F(JobTest, TakesPathsFromTheFolderOfAFileNamedRelatively) {
  WriteJob(MinimalJob());
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_);
  const auto job = LoadJob("job.json", false);
  std::filesystem::current_path(before);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(std::filesystem::path(job->training.images),
            std::filesystem::canonical(directory_) / "x.npy");
}

TEST_F(JobTest, ReportsAllErrorsAtOnce) {
  EXPECT_EQ(
      LoadError({{"name", "a b"},
                 {"modell", "m"},
                 {"data", {{"training", {{"images", 3}}}}},
                 {"loss", "crossentropy"},
                 {"optimizer", {{"class_name", "Adam"}, {"config", {{"learning_rate", -0.1}}}}},
                 {"batch_size", 0},
                 {"epochs", 1},
                 {"steps", 1}}),
      "$.name: is \"a b\"; must be 1 to 100 letters, digits, \"_\", \"-\" or \".\", the first a "
      "letter or "
      "digit\n"
      "$.model: is missing: the path of a Keras model's JSON, as model.to_json() writes it\n"
      "$.data.training.images: is 3; must be the path of a file\n"
      "$.data.training.labels: is missing: the file of their labels\n"
      "$.loss: is \"crossentropy\", a loss that Shoal lacks; did you mean "
      "\"BinaryCrossentropy\"? Known: BinaryCrossentropy, "
      "BinaryFocalCrossentropy, CategoricalCrossentropy, CategoricalFocalCrossentropy, "
      "CategoricalHinge, CosineSimilarity, Dice, Hinge, Huber, KLDivergence, LogCosh, "
      "MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredError, "
      "MeanSquaredLogarithmicError, Poisson, SparseCategoricalCrossentropy, SquaredHinge, Tversky\n"
      "$.optimizer.config.learning_rate: is -0.1; must be a number greater than 0, at most 1000\n"
      "$.batch_size: is 0; must be an integer from 1 to 1048576\n"
      "$.steps: is given together with $.epochs; give one of the two\n"
      "$.modell: is not a known key; did you mean \"model\"? Known: name, model, initial_weights, "
      "data, loss, metrics, weighted_metrics, class_weight, callbacks, optimizer, batch_size, "
      "micro_batch_size, epochs, steps, stop_after_nan_steps, strategy, compression, checkpoint, "
      "seed");
}

TEST_F(JobTest, RejectsWhatIsNoJob) {
  EXPECT_EQ(LoadError(json::array()), "$: is [], an array; must be an object");
  const std::string path = Write("job.json", "{\"name\": ");
  EXPECT_THAT(std::string(LoadJob(path, false).status().message()),
              StartsWith(path + ": is not JSON: "));
  EXPECT_THAT(std::string(LoadJob(path + "x", false).status().message()),
              StartsWith(path + "x: No such file"));
}

TEST_F(JobTest, RejectsWrongValuesByPath) {
  EXPECT_EQ(ErrorWith("/data/training/image", "x"),
            "$.data.training.image: is not a known key; did you mean \"images\"? Known: "
            "format, images, features, labels, weights, validation_split, test_split, subset, "
            "seed, cache");
  EXPECT_EQ(ErrorWith("/data/test", json::object()),
            "$.data.test.images: is missing: the file of examples\n"
            "$.data.test.labels: is missing: the file of their labels");
  EXPECT_EQ(
      ErrorWith("/metrics", {"precision", "accuracy", "acc"}),
      "$.metrics[2]: is \"accuracy\", the name of another metric; give this one a \"name\" in its "
      "\"config\"");
  EXPECT_EQ(ErrorWith("/weighted_metrics", {"auc", "AUC", "auc"}),
            "$.weighted_metrics[2]: is \"auc\", the name of another metric; give this one a "
            "\"name\" in its "
            "\"config\"");
  EXPECT_EQ(ErrorWith("/class_weight", {{"0", -1}, {"cat", 1}, {"01", 1}}),
            "$.class_weight.0: is -1; must be a number from 0 to 1000000000\n"
            "$.class_weight.01: is not a class; expected \"0\", \"1\", …\n"
            "$.class_weight.cat: is not a class; expected \"0\", \"1\", …");
  EXPECT_THAT(
      ErrorWith("/class_weight", {1, 2}),
      HasSubstr("$.class_weight: is [1,2]; must be an object with the weight of each class"));
  json weighted = MinimalJob();
  weighted["loss"] = {{"class_name", "MeanSquaredError"},
                      {"config", {{"reduction", "mean_with_sample_weight"}}}};
  Load(weighted);
  weighted["class_weight"] = {{"0", 2}};
  EXPECT_THAT(LoadError(weighted), HasSubstr("$.loss.config.reduction: is "
                                             "\"mean_with_sample_weight\", which divides by the "
                                             "sum of the weights; Shoal divides"));
  EXPECT_EQ(ErrorWith("/metrics", "accuracy"),
            "$.metrics: is \"accuracy\"; must be a list, for example [\"accuracy\"]");
  EXPECT_EQ(ErrorWith("/strategy", "mirrored"),
            "$.strategy: is \"mirrored\", a strategy that Shoal lacks; known: async, sync, local");
  EXPECT_EQ(ErrorWith("/strategy", {{"name", "asyn"}, {"chunk_bytes", 100}}),
            "$.strategy.name: is \"asyn\", a strategy that Shoal lacks; did you mean \"async\"? "
            "Known: async, sync, local\n"
            "$.strategy.chunk_bytes: is 100; must be a multiple of 64");
  EXPECT_EQ(
      ErrorWith("/strategy", {{"name", "async"}, {"max_stale", 4}, {"speculate_after", 0.5}}),
      "$.strategy.speculate_after: is 0.5; must be a number from 1 to 1000\n"
      "$.strategy.max_stale: is not a known key; did you mean \"max_staleness\"? Known: name, "
      "min_shard_bytes, chunk_bytes, window_steps, batches_per_step, fragments, "
      "lease_timeout_seconds, "
      "speculate_after, max_staleness, learning_rate_by_staleness, scale_learning_rate, "
      "momentum_by_workers, warmup_steps, workers, look_ahead, worker_momentum, "
      "gradients_per_update, outer_optimizer");
  EXPECT_EQ(ErrorWith("/compression", {{"push", "int4"}, {"pull", "top_k"}, {"up", "int8"}}),
            "$.compression.push: is \"int4\", a codec that Shoal lacks; did you mean \"int8\"? "
            "Known: bf16, int8, e3m0, top_k\n"
            "$.compression.pull: is \"top_k\", which loses too much of the values that workers "
            "compute with; use it for $.compression.push\n"
            "$.compression.up: is not a known key; known: push, pull");
  EXPECT_EQ(ErrorWith("/checkpoint", {{"every", 5}}),
            "$.checkpoint.every: is not a known key; known: every_steps, every_seconds, keep");
  for (const char* key : {"/lr", "/learning_rate"}) {
    EXPECT_THAT(ErrorWith(key, 0.1), EndsWith(": is an option of the optimizer: "
                                              "$.optimizer.config.learning_rate"));
  }
  EXPECT_EQ(
      ErrorWith("/optimizer", {{"class_name", "Adam"}, {"config", {{"lr", 0.1}}}}),
      "$.optimizer.config.lr: is not a known key of \"Adam\"; Keras calls it \"learning_rate\"");
  EXPECT_EQ(ErrorWith("/optimizer", {{"class_name", "Adam"}, {"learning_rate", 0.1}}),
            "$.optimizer.learning_rate: is not inside \"config\"; expected "
            "$.optimizer.config.learning_rate");
  EXPECT_THAT(ErrorWith("/optimizer", {{"class_name", "Adam"}, {"confg", json::object()}}),
              StartsWith("$.optimizer.confg: is not a known key; did you mean \"config\"?"));
  EXPECT_EQ(ErrorWith("/data/validation", {{"images", "x.npy"}, {"labels", "y.npy"}}),
            "$.data.validation: is called $.data.test in Shoal: the set evaluated after every "
            "epoch");
  EXPECT_EQ(ErrorWith("/batch_size", "64"),
            "$.batch_size: is \"64\"; must be an integer from 1 to 1048576");
  EXPECT_EQ(ErrorWith("/seed", -1),
            "$.seed: is -1; must be an integer from 0 to 9223372036854775807");
  json neither = MinimalJob();
  neither.erase("epochs");
  EXPECT_EQ(LoadError(neither), "$.epochs: is missing, and so is $.steps; give one of the two");
}

TEST_F(JobTest, NamesTheModelFileInItsErrors) {
  const std::string model = (directory_ / "other.json").string();
  EXPECT_EQ(ErrorWith("/model", "other.json"), "$.model: " + model + ": No such file or directory");
  Write("other.json", "PK\x03\x04 and more");
  EXPECT_THAT(ErrorWith("/model", "other.json"),
              StartsWith("$.model: " + model + ": cannot be read as a zip archive of 13 bytes"));
  Write("other.json", "\x89HDF\r\n");
  EXPECT_THAT(ErrorWith("/model", "other.json"),
              AllOf(StartsWith("$.model: " + model + ": is HDF5, Keras's old format"),
                    HasSubstr("keras.models.load_model(\"" + model + "\").save(")));
  Write("other.json", "[");
  EXPECT_THAT(ErrorWith("/model", "other.json"), StartsWith("$.model: " + model + ": is not JSON"));
  Write("other.json", "[1]");
  EXPECT_EQ(ErrorWith("/model", "other.json"),
            "$.model: " + model + ": is [1], an array; must be a Keras model as an object");
  EXPECT_EQ(ErrorWith("/model", ""), "$.model: is \"\"; must be the path of a file");
}

TEST_F(JobTest, InitialWeightsAreKnownAgainByTheirChecksum) {
  json root = MinimalJob();
  EXPECT_FALSE(json::parse(Load(root).ResolvedText()).contains("initial_weights"));
  const std::string path = (directory_ / "w.safetensors").string();
  root["initial_weights"] = "w.safetensors";
  // Whoever makes the first checkpoint misses it; a run that has one goes on.
  EXPECT_EQ(Load(root).initial_weights.crc32c, 0u);
  Write("w.safetensors", "123456789");
  const Job job = Load(root);
  EXPECT_EQ(job.initial_weights.path, path);
  EXPECT_EQ(job.initial_weights.crc32c, 0xe3069283u);
  const json resolved = json::parse(job.ResolvedText());
  EXPECT_EQ(resolved["initial_weights"], json({{"path", path}, {"crc32c", "e3069283"}}));
  // Whoever has the checksum needs the file no more.
  std::filesystem::remove(path);
  const auto again = ParseResolvedJob(job.ResolvedText(), "job");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ResolvedText(), job.ResolvedText());
  EXPECT_THAT(DescribeDifferences(job.ResolvedText(), Load(root).ResolvedText()),
              ::testing::IsEmpty());
  root["initial_weights"] = {{"path", "w.safetensors"}, {"crc32c", "xyz"}};
  EXPECT_EQ(LoadError(root), "$.initial_weights.crc32c: is \"xyz\"; must be 8 hexadecimal digits");
  root["initial_weights"] = json::object();
  EXPECT_EQ(LoadError(root), "$.initial_weights.path: is missing: the file to load");
  root["initial_weights"] = 3;
  EXPECT_EQ(LoadError(root), "$.initial_weights: is 3; must be the path of a file");
}

TEST_F(JobTest, MissingDataIsAnErrorWhereItIsAskedFor) {
  Write("x.npy", "");
  std::filesystem::create_directory(directory_ / "y.npy");
  json root = MinimalJob();
  root["data"]["test"] = {{"images", "x.npy"}, {"labels", "none.npy"}};
  EXPECT_EQ(LoadError(root, /*check_data=*/true),
            "$.data.training.labels: " + (directory_ / "y.npy").string() +
                ": is not a regular file\n" + "$.data.test.labels: " +
                (directory_ / "none.npy").string() + ": No such file or directory");
  Load(root);
}

TEST_F(JobTest, ReadsFeaturesSubsetAndCacheOfData) {
  json root = MinimalJob();
  root["data"]["training"] = {{"features", {{"user", "u.npy"}, {"item", "/abs/i.npy"}}},
                              {"labels", "y.npy"},
                              {"validation_split", 0.25},
                              {"test_split", 0.5},
                              {"subset", "training"},
                              {"seed", 7},
                              {"cache", "disk"}};
  const Job job = Load(root);
  const auto check = [&](const DataSource& source) {
    ASSERT_EQ(source.features.size(), 2u);
    EXPECT_EQ(source.features[0].input, "item");
    EXPECT_THAT(source.features[0].from, ElementsAre("/abs/i.npy"));
    EXPECT_EQ(source.features[1].input, "user");
    EXPECT_THAT(source.features[1].from, ElementsAre((directory_ / "u.npy").string()));
    EXPECT_FALSE(source.empty());
    EXPECT_EQ(source.format, "arrays");
    EXPECT_EQ(source.validation_split, 0.25);
    EXPECT_EQ(source.test_split, 0.5);
    EXPECT_EQ(source.subset, "training");
    EXPECT_EQ(source.seed, 7u);
    EXPECT_EQ(source.cache, "disk");
  };
  check(job.training);
  const auto again = ParseResolvedJob(job.ResolvedText(), "job.json");
  ASSERT_TRUE(again.ok()) << again.status();
  check(again->training);
  EXPECT_EQ(again->ResolvedText(), job.ResolvedText());
}

// A run that an older program began goes on: its text had nothing else.
TEST_F(JobTest, APairOfFilesIsWrittenAsItAlwaysWas) {
  const json resolved = json::parse(Load(MinimalJob()).ResolvedText());
  EXPECT_EQ(resolved["data"]["training"], (json{{"images", (directory_ / "x.npy").string()},
                                                {"labels", (directory_ / "y.npy").string()}}));
}

TEST_F(JobTest, PartsOfTheSameDataAreChosenAlike) {
  json root = MinimalJob();
  json part = root["data"]["training"];
  part["validation_split"] = 0.2;
  part["subset"] = "training";
  root["data"]["training"] = part;
  part["subset"] = "validation";
  root["data"]["test"] = part;
  EXPECT_EQ(Load(root).test.subset, "validation");
  root["data"]["test"]["seed"] = 7;
  EXPECT_THAT(LoadError(root), HasSubstr("$.data.test: "));
}

TEST_F(JobTest, RejectsWrongDataByPath) {
  const auto error = [this](const json& changes) {
    json root = MinimalJob();
    root["data"]["training"].merge_patch(changes);
    return LoadError(root);
  };
  EXPECT_EQ(error({{"format", "array"}}),
            "$.data.training.format: is \"array\", which Shoal does not know; did you mean "
            "\"arrays\"? Known: arrays, image_folder, cifar10, cifar100, npz, csv, tfrecord");
  EXPECT_EQ(error({{"path", "x.npz"}}),
            "$.data.training.format: is missing; \"path\" goes with one of image_folder, cifar10, "
            "cifar100, npz, csv, tfrecord");
  EXPECT_EQ(error({{"features", {{"a", "a.npy"}}}}),
            "$.data.training.images: is given together with $.data.training.features; give "
            "one of the two");
  EXPECT_EQ(error({{"images", nullptr}, {"features", {{"a", 3}}}}),
            "$.data.training.features.a: is 3; must be the path of a file");
  EXPECT_THAT(error({{"images", nullptr}, {"features", {{"", "a.npy"}, {"x", "b.npy"}}}}),
              HasSubstr("$.data.training.features"));
  EXPECT_EQ(error({{"validation_split", 0.5}, {"test_split", 0.5}, {"subset", "test"}}),
            "$.data.training.test_split: is 0.5; must be less than 1 together with "
            "\"validation_split\", which is 0.5");
  EXPECT_EQ(error({{"validation_split", 0.5}}),
            "$.data.training.subset: is missing: the part of the data, \"training\", "
            "\"validation\" or \"test\"");
  EXPECT_EQ(error({{"subset", "test"}}),
            "$.data.training.subset: needs \"validation_split\" or \"test_split\", which "
            "set its size");
  EXPECT_EQ(error({{"cache", "ram"}}),
            "$.data.training.cache: is \"ram\", which Shoal does not know; known: memory, disk");
}

TEST_F(JobTest, ResolvedTextReadsBackTheSame) {
  json root = MinimalJob();
  root["data"]["test"] = root["data"]["training"];
  root["loss"] = {{"class_name", "CategoricalCrossentropy"},
                  {"config", {{"from_logits", true}, {"label_smoothing", 0.1}}}};
  root["optimizer"] = {{"class_name", "Adam"},
                       {"config", {{"learning_rate", 1}, {"epsilon", 1e-8}}}};
  root["metrics"] = {"acc"};
  root["seed"] = 9223372036854775807;
  const Job job = Load(root);
  const std::string text = job.ResolvedText();
  const auto again = ParseResolvedJob(text, "job.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->ResolvedText(), text);
  EXPECT_EQ(again->model_path, "");
  EXPECT_EQ(again->test.labels, job.test.labels);
  EXPECT_THAT(again->loss, HasSubstr(R"("label_smoothing":0.1)"));
  EXPECT_EQ(again->optimizer, job.optimizer);
  EXPECT_EQ(again->seed, 9223372036854775807u);
  EXPECT_EQ(again->Fingerprint(), job.Fingerprint());
  EXPECT_EQ(job.Fingerprint(), Crc32c(text));
  // A resolved job is a job file too.
  const auto loaded = LoadJob(Write("resolved.json", text), false);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->ResolvedText(), text);
}

TEST_F(JobTest, ResolvedTextIsCanonical) {
  json root = MinimalJob();
  root["optimizer"] = "SGD";
  root["strategy"] = "async";
  root["loss"] = {{"class_name", "MeanSquaredError"}, {"config", {{"name", "x"}}}};
  root["model"] = "../" + directory_.filename().string() + "/./model.json";
  const Job same = Load(root);
  const Job job = Load(MinimalJob());
  EXPECT_EQ(same.ResolvedText(), job.ResolvedText());
  // Runs go on that were begun before there were these.
  EXPECT_THAT(job.ResolvedText(), testing::Not(HasSubstr("max_staleness")));
  EXPECT_THAT(job.ResolvedText(), testing::Not(HasSubstr("speculate_after")));
  EXPECT_THAT(job.ResolvedText(), testing::Not(HasSubstr("learning_rate_by_staleness")));
  root["seed"] = 1;
  EXPECT_NE(Load(root).Fingerprint(), job.Fingerprint());
}

TEST_F(JobTest, ResolvedJobIsWholeInItself) {
  json root = json::parse(Load(MinimalJob()).ResolvedText());
  root["model"] = "model.json";
  root["data"]["training"]["images"] = "x.npy";
  EXPECT_EQ(ParseResolvedJob(root.dump(), "checkpoint").status(),
            absl::InvalidArgumentError(
                "checkpoint: $.model: is \"model.json\"; must be a Keras model as an object\n"
                "checkpoint: $.data.training.images: is \"x.npy\"; must be an absolute path"));
}

}  // namespace
}  // namespace shoal
