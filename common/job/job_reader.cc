#include "common/job/job_reader.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/archive/keras_archive.h"
#include "common/compression/codec.h"
#include "common/job/data_source_reader.h"
#include "common/job/job_path.h"
#include "common/job/job_strategy.h"
#include "common/job/strategy_reader.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"
#include "common/loss/keras_loss.h"
#include "common/loss/weighted_reduction.h"
#include "common/optimizer/optimizer.h"
#include "common/training_metric/metric.h"

namespace shoal {
namespace {

using nlohmann::json;

constexpr size_t kMaxNameBytes = 100;
constexpr size_t kMaxMetrics = 32;
constexpr size_t kMaxClassWeights = 1 << 16;
constexpr NumberRange kClassWeight = {.min = 0, .max = 1e9};
constexpr IntegerRange kBatchSize = {1, 1 << 20};
constexpr IntegerRange kEpochs = {1, 1'000'000};
constexpr IntegerRange kSteps = {1, 999'999'999'999};  // names of checkpoints have 12 digits
constexpr IntegerRange kSeed = {0, INT64_MAX};
constexpr NumberRange kCheckpointSeconds = {.min = 0, .max = 31'536'000};
constexpr IntegerRange kCheckpointsKept = {1, 1000};

class JobReader {
 public:
  JobReader(const JobReadOptions& options, JsonErrors* errors)
      : options_(options), errors_(errors) {}

  Job Read(const json& root) {
    JsonObject top(root, "$", errors_);
    ReadName(top);
    ReadModel(top);
    ReadInitialWeights(top);
    ReadData(top);
    if (const json* value = top.Require("loss",
                                        "the function to minimise, for example "
                                        "\"sparse_categorical_crossentropy\"")) {
      const auto loss = ReadLoss(*value, top.PathOf("loss"), errors_);
      if (loss != nullptr) job_.loss = loss->config();
    }
    ReadMetrics(top);
    ReadClassWeight(top);
    CheckReduction(top);
    ReadCallbacks(top);
    if (const json* value =
            top.Require("optimizer", "the rule that applies gradients, for example \"adam\"")) {
      const auto optimizer = ReadOptimizer(*value, top.PathOf("optimizer"), errors_);
      if (optimizer != nullptr) job_.optimizer = optimizer->config();
    }
    top.ReadInteger("batch_size", kBatchSize, &job_.batch_size);
    top.ReadInteger("micro_batch_size", kBatchSize, &job_.micro_batch_size);
    ReadLength(top);
    top.ReadInteger("stop_after_nan_steps", {0, kSteps.max}, &job_.stop_after_nan_steps);
    if (const json* value = top.Find("strategy"))
      job_.strategy = ReadStrategy(*value, top.PathOf("strategy"), errors_);
    RejectRateOfOneUpdate();
    CheckMomentum();
    CheckLookAhead();
    CheckLocalSteps();
    ReadCompression(top);
    ReadCheckpoint(top);
    top.ReadInteger("seed", kSeed, &job_.seed);
    for (const char* key : {"lr", "learning_rate"}) {
      if (!root.is_object() || !root.contains(key)) continue;
      errors_->Add(top.PathOf(key),
                   "is an option of the optimizer: $.optimizer.config.learning_rate");
      top.Ignore(key);
    }
    top.RejectUnknownKeys();
    return std::move(job_);
  }

 private:
  bool resolved() const { return options_.base_dir.empty(); }

  void ReadName(JsonObject& top) {
    const json* value = top.Require("name", "the name of the job, for example \"fashion_mnist\"");
    if (value == nullptr) return;
    const std::string name = value->is_string() ? value->get<std::string>() : "";
    const auto allowed = [](unsigned char c) {
      return (c < 128 && std::isalnum(c)) || c == '_' || c == '-' || c == '.';
    };
    if (name.empty() || name.size() > kMaxNameBytes ||
        !std::all_of(name.begin(), name.end(), allowed) ||
        !std::isalnum(static_cast<unsigned char>(name[0]))) {
      return top.AddWrong("name", *value,
                          absl::StrCat("1 to ", kMaxNameBytes,
                                       " letters, digits, \"_\", \"-\" or \".\", the "
                                       "first a letter or digit"));
    }
    job_.name = name;
  }

  void ReadModel(JsonObject& top) {
    const json* value =
        top.Require("model", "the path of a Keras model's JSON, as model.to_json() writes it");
    if (value == nullptr) return;
    if (value->is_object()) {
      job_.model_json = value->dump();
      return;
    }
    if (resolved()) return top.AddWrong("model", *value, "a Keras model as an object");
    job_.model_path = ReadJobPath(top, "model", *value, options_);
    if (!job_.model_path.empty()) ReadModelFile(top);
  }

  void ReadModelFile(JsonObject& top) {
    const std::string path = top.PathOf("model");
    const bool archive = IsZipArchive(job_.model_path);
    absl::StatusOr<std::string> text =
        archive ? ReadArchivedModel(job_.model_path) : ReadJsonFile(job_.model_path);
    if (!text.ok()) return errors_->Add(path, std::string(text.status().message()));
    if (text->starts_with("\x89HDF")) {
      return errors_->Add(path,
                          absl::StrCat(job_.model_path,
                                       ": is HDF5, Keras's old format. Save the model as .keras:\n"
                                       "  python -c 'import keras; keras.models.load_model(\"",
                                       job_.model_path, "\").save(\"model.keras\")'"));
    }
    if (archive) job_.initial_weights.path = job_.model_path;
    absl::StatusOr<json> model = ParseJson(*text, job_.model_path);
    if (!model.ok()) return errors_->Add(path, std::string(model.status().message()));
    if (!model->is_object()) {
      return errors_->Add(path, absl::StrCat(job_.model_path, ": is ", ShortJsonAndType(*model),
                                             "; must be a Keras model as an object"));
    }
    job_.model_json = *std::move(text);
  }

  // Reads the weights of the model's own archive, or of another file.
  void ReadInitialWeights(JsonObject& top) {
    Job::InitialWeights* weights = &job_.initial_weights;
    const std::string path = top.PathOf("initial_weights");
    const json* crc32c = nullptr;
    if (const json* value = top.Find("initial_weights"); value != nullptr && value->is_object()) {
      JsonObject object(*value, path, errors_);
      if (const json* file = object.Require("path", "the file to load"))
        weights->path = ReadJobPath(object, "path", *file, options_);
      crc32c = object.Find("crc32c");
      const std::string digits =
          crc32c != nullptr && crc32c->is_string() ? crc32c->get<std::string>() : "";
      if (crc32c != nullptr &&
          (digits.size() != 8 || !absl::SimpleHexAtoi(digits, &weights->crc32c))) {
        return object.AddWrong("crc32c", *crc32c, "8 hexadecimal digits");
      }
      object.RejectUnknownKeys();
    } else if (value != nullptr) {
      weights->path = ReadJobPath(top, "initial_weights", *value, options_);
    }
    if (weights->path.empty() || crc32c != nullptr) return;
    const absl::StatusOr<uint32_t> checksum = ChecksumOfWeights(weights->path);
    // A run that has begun continues without this file. Only making the first checkpoint needs it
    // and reports it missing.
    if (absl::IsNotFound(checksum.status())) return;
    if (!checksum.ok()) return errors_->Add(path, std::string(checksum.status().message()));
    weights->crc32c = *checksum;
  }

  void ReadData(JsonObject& top) {
    const json* value = top.Require("data",
                                    "the examples, for example {\"training\": {\"images\": "
                                    "\"images.idx.gz\", \"labels\": \"labels.idx.gz\"}}");
    if (value == nullptr) return;
    JsonObject data(*value, top.PathOf("data"), errors_);
    if (const json* training = data.Require("training", "the training set")) {
      job_.training = ReadDataSource(*training, data.PathOf("training"), options_, errors_);
    }
    if (const json* test = data.Find("test")) {
      job_.test = ReadDataSource(*test, data.PathOf("test"), options_, errors_);
      CheckParts(data.PathOf("test"));
    }
    for (const char* key : {"validation", "validation_data", "val", "evaluation"}) {
      if (!value->is_object() || !value->contains(key)) continue;
      errors_->Add(data.PathOf(key),
                   "is called $.data.test in Shoal: the set evaluated after every epoch");
      data.Ignore(key);
    }
    data.RejectUnknownKeys();
  }

  // Reads "metrics", then "weighted_metrics", in which examples count by their weights. If a
  // weighted metric has the name of another one, Keras prefixes it with "weighted_".
  void ReadMetrics(JsonObject& top) {
    std::set<std::string> names;
    size_t accuracy_at = 0;     // index in job_.metrics
    std::string accuracy_word;  // the word that names it, "acc"; empty: none
    for (const bool weighted : {false, true}) {
      const char* const key = weighted ? "weighted_metrics" : "metrics";
      const json* value = top.Find(key);
      if (value == nullptr) continue;
      if (!value->is_array()) {
        top.AddWrong(key, *value, "a list, for example [\"accuracy\"]");
        continue;
      }
      if (value->size() > kMaxMetrics) {
        top.AddWrong(key, value->size(),
                     absl::StrCat("a list of at most ", kMaxMetrics, " metrics"));
        continue;
      }
      const std::set<std::string> plain = names;
      for (size_t i = 0; i < value->size(); ++i) {
        const std::string path = JsonPath(top.PathOf(key), i);
        const auto metric = ReadMetric((*value)[i], path, errors_, weighted);
        if (metric == nullptr) continue;
        const std::string word = AccuracyWord((*value)[i], *metric);
        if (!weighted && !word.empty()) {
          accuracy_at = job_.metrics.size();
          accuracy_word = word;
        }
        if (weighted && !word.empty() && !accuracy_word.empty() && word != accuracy_word &&
            names.insert("acc").second) {
          CallByItsWord(*metric, accuracy_at, word);
          continue;
        }
        const bool taken = weighted && plain.contains(metric->name());
        const std::string name = (taken ? "weighted_" : "") + metric->name();
        (weighted ? job_.weighted_metrics : job_.metrics)
            .push_back(taken ? ConfigNamed(*metric, name) : metric->config());
        figures_.push_back({"val_" + name, metric->larger_is_better()});
        if (names.insert(name).second) continue;
        errors_->Add(path,
                     absl::StrCat("is \"", name,
                                  "\", the name of another metric; give this one a \"name\" in "
                                  "its \"config\""));
      }
    }
  }

  // The word in `value` for the accuracy that Keras picks. Empty if `value` is a config.
  static std::string AccuracyWord(const json& value, const Metric& metric) {
    if (!value.is_string() || metric.name() != "accuracy") return "";
    return value == "acc" ? "acc" : "accuracy";
  }

  // Both words mean the same metric, named "accuracy". If a job has both, Keras names each by its
  // own word. `weighted` was given as `word`, and metric number `plain` as the other word.
  void CallByItsWord(const Metric& weighted, size_t plain, const std::string& word) {
    const std::string short_config = ConfigNamed(weighted, "acc");
    const bool is_short = word == "acc";
    job_.weighted_metrics.push_back(is_short ? short_config : weighted.config());
    if (!is_short) job_.metrics[plain] = short_config;
    figures_.push_back({"val_acc", weighted.larger_is_better()});
  }

  void ReadClassWeight(JsonObject& top) {
    const json* value = top.Find("class_weight");
    if (value == nullptr) return;
    if (value->is_object() && value->size() > kMaxClassWeights) {
      return top.AddWrong("class_weight", value->size(),
                          absl::StrCat("the weights of at most ", kMaxClassWeights, " classes"));
    }
    if (!value->is_object()) {
      return top.AddWrong("class_weight", *value,
                          "an object with the weight of each class by its number, for example "
                          "{\"0\": 1.0, \"1\": 2.5}");
    }
    JsonObject weights(*value, top.PathOf("class_weight"), errors_);
    for (const auto& [key, weight] : value->items()) {
      int64_t of_class = 0;
      if (!absl::SimpleAtoi(key, &of_class) || of_class < 0 || absl::StrCat(of_class) != key) {
        errors_->Add(weights.PathOf(key.c_str()), "is not a class; expected \"0\", \"1\", …");
      }
      double number = 0;
      weights.ReadNumber(key.c_str(), kClassWeight, &number);
      job_.class_weight[of_class] = number;
    }
  }

  void ReadCallbacks(JsonObject& top) {
    const json* value = top.Find("callbacks");
    if (value == nullptr) return;
    const std::string path = top.PathOf("callbacks");
    job_.callbacks = shoal::ReadCallbacks(*value, path, figures_, errors_);
    if (!job_.callbacks.empty() && job_.test.empty())
      errors_->Add(path, "need $.data.test: they follow figures of the test set");
  }

  // Rejects a mean of the loss that Keras computes in another way if examples have weights.
  void CheckReduction(JsonObject& top) {
    const bool weighted =
        !job_.class_weight.empty() || !job_.training.weights.empty() || !job_.test.weights.empty();
    const json* loss = top.Find("loss");
    if (weighted && loss != nullptr) CheckWeightedReduction(*loss, top.PathOf("loss"), errors_);
  }

  void ReadLength(JsonObject& top) {
    const bool epochs = top.Find("epochs") != nullptr;
    const bool steps = top.Find("steps") != nullptr;
    top.ReadInteger("epochs", kEpochs, &job_.epochs);
    top.ReadInteger("steps", kSteps, &job_.steps);
    if (epochs && steps) {
      errors_->Add("$.steps", "is given together with $.epochs; give one of the two");
    } else if (!epochs && !steps && top.valid()) {
      errors_->Add("$.epochs", "is missing, and so is $.steps; give one of the two");
    }
  }

  // Rejects learning_rate_by_staleness for optimizers that scale all variables by the learning
  // rate. An update with an old gradient would scale all updates by others.
  void RejectRateOfOneUpdate() {
    if (!job_.strategy.learning_rate_by_staleness || job_.optimizer.empty()) return;
    const auto optimizer = MakeOptimizer(job_.optimizer);
    if (!optimizer.ok() || !(*optimizer)->recomputes_values()) return;
    errors_->Add(
        "$.strategy.learning_rate_by_staleness",
        absl::StrCat("is true, but $.optimizer is ",
                     json::parse(job_.optimizer)["class_name"].dump(),
                     ", whose learning rate scales all earlier updates, too. Choose another "
                     "optimizer, for example \"Adagrad\", or leave the field out"));
  }

  // momentum_by_workers lowers the optimizer's momentum. worker_momentum replaces the momentum of
  // the ps.
  void CheckMomentum() {
    const Job::Strategy& strategy = job_.strategy;
    if (job_.optimizer.empty()) return;
    const json optimizer = json::parse(job_.optimizer);
    const std::string name = optimizer["class_name"].dump();
    if (strategy.momentum_by_workers && MomentumOption(optimizer).empty()) {
      errors_->Add(
          "$.strategy.momentum_by_workers",
          absl::StrCat("is true, but $.optimizer ", name,
                       " has no momentum; leave the field out, or choose an optimizer with "
                       "momentum"));
    }
    if (strategy.worker_momentum > 0 &&
        (name != "\"SGD\"" || optimizer["config"]["momentum"] != 0)) {
      errors_->Add("$.strategy.worker_momentum",
                   absl::StrCat("is ", strategy.worker_momentum, ", but $.optimizer is ", name,
                                name == "\"SGD\"" ? " with a momentum of its own" : "",
                                "; it needs SGD with a momentum of 0"));
    }
  }

  // Look-ahead extrapolates from the optimizer's slots. Rejects optimizers that cannot extrapolate.
  void CheckLookAhead() {
    if (job_.strategy.look_ahead == 0 || job_.optimizer.empty()) return;
    const auto optimizer = MakeOptimizer(job_.optimizer);
    if (!optimizer.ok() || (*optimizer)->PrepareAhead(1, 1) != nullptr) return;
    errors_->Add(
        "$.strategy.look_ahead",
        absl::StrCat("is ", job_.strategy.look_ahead, ", but $.optimizer is ",
                     json::parse(job_.optimizer)["class_name"].dump(),
                     ", whose next updates cannot be predicted; use SGD with momentum, Adam or "
                     "AdamW"));
  }

  // Rejects steps whose count of examples exceeds the 32 bits in a report. Under the strategy
  // local, also rejects averaging by the worker's optimizer, because its result would never leave
  // the worker.
  void CheckLocalSteps() {
    const uint64_t batches = job_.strategy.batches_per_step;
    const uint64_t most = std::numeric_limits<uint32_t>::max();
    if (batches * static_cast<uint64_t>(job_.batch_size) > most) {
      errors_->Add("$.strategy.batches_per_step",
                   absl::StrCat("is ", batches, ", of ", job_.batch_size,
                                " examples each; a step may have at most ", most, " examples"));
    }
    if (!job_.strategy.local() || job_.optimizer.empty()) return;
    const auto optimizer = MakeOptimizer(job_.optimizer);
    if (!optimizer.ok() || (*optimizer)->average_slot().empty()) return;
    errors_->Add("$.optimizer.config.use_ema",
                 "is true, but under the strategy \"local\" the ps hold the model: give it to "
                 "$.strategy.outer_optimizer");
  }

  void ReadCompression(JsonObject& top) {
    const json* value = top.Find("compression");
    if (value == nullptr) return;
    JsonObject compression(*value, top.PathOf("compression"), errors_);
    const auto read = [&](const char* key, Direction direction, std::string* out) {
      const json* codec = compression.Find(key);
      if (codec == nullptr) return;
      const auto made = ReadCodec(*codec, compression.PathOf(key), direction, errors_);
      if (made != nullptr) *out = made->config();
    };
    read("push", Direction::kPush, &job_.compression.push);
    read("pull", Direction::kPull, &job_.compression.pull);
    RejectResiduals(compression);
    compression.RejectUnknownKeys();
  }

  // Rejects codecs with a residual in rounds. A worker adds the residual of a step's gradient to
  // its next step's. The variables would then depend on which worker computed a step.
  void RejectResiduals(JsonObject& compression) {
    if (!job_.strategy.in_rounds() || job_.compression.push.empty()) return;
    const auto codec = MakeCodec(job_.compression.push, Direction::kPush);
    if (!codec.ok() || !(*codec)->leaves_residual()) return;
    errors_->Add(
        compression.PathOf("push"),
        absl::StrCat("is ", ShortJson(*compression.Find("push")),
                     ", which adds what it left out of a step's gradient to the worker's "
                     "next one; under the strategy ",
                     job_.strategy.sync() ? "sync" : "local with gradients_per_update",
                     " no update may depend on which worker computed a step. Choose a codec that "
                     "leaves nothing out, for example \"bf16\""));
  }

  // Rejects training and test sets from the same data if they choose their parts differently. Such
  // parts have common examples.
  void CheckParts(const std::string& test_path) {
    const DataSource &training = job_.training, &test = job_.test;
    const auto same_files = [](const DataSource::Feature& a, const DataSource::Feature& b) {
      return a.from == b.from;
    };
    // Without paths, the features name the files.
    const bool same_data = training.paths == test.paths && training.images == test.images &&
                           (!training.paths.empty() ||
                            std::equal(training.features.begin(), training.features.end(),
                                       test.features.begin(), test.features.end(), same_files));
    if (!same_data || training.subset.empty() || test.subset.empty()) return;
    if (training.validation_split == test.validation_split &&
        training.test_split == test.test_split && training.seed == test.seed) {
      return;
    }
    errors_->Add(test_path,
                 "is a subset of the same data as $.data.training; give both the same "
                 "validation_split, test_split and seed, or they share examples");
  }

  void ReadCheckpoint(JsonObject& top) {
    const json* value = top.Find("checkpoint");
    if (value == nullptr) return;
    JsonObject checkpoint(*value, top.PathOf("checkpoint"), errors_);
    checkpoint.ReadInteger("every_steps", {0, kSteps.max}, &job_.checkpoint.every_steps);
    checkpoint.ReadNumber("every_seconds", kCheckpointSeconds, &job_.checkpoint.every_seconds);
    checkpoint.ReadInteger("keep", kCheckpointsKept, &job_.checkpoint.keep);
    checkpoint.RejectUnknownKeys();
  }

  const JobReadOptions& options_;
  JsonErrors* const errors_;
  Job job_;
  std::vector<MonitoredFigure> figures_ = {{"val_loss", false}};  // for callbacks
};

}  // namespace

Job ReadJob(const json& root, const JobReadOptions& options, JsonErrors* errors) {
  return JobReader(options, errors).Read(root);
}

}  // namespace shoal
