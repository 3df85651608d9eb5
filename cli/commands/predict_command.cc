#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "cli/commands/command.h"
#include "cli/display/console.h"
#include "cli/display/number_text.h"
#include "cli/flags/compute_flags.h"
#include "cli/flags/output_ending.h"
#include "cli/flags/trained_model_flags.h"
#include "cli/trained_model/data_choice.h"
#include "cli/trained_model/dataset_run.h"
#include "cli/trained_model/gapped_dataset.h"
#include "cli/trained_model/prediction_format.h"
#include "cli/trained_model/trained_model.h"
#include "common/base/status_macros.h"
#include "common/files/output_file.h"
#include "worker/compute/registry/create_model_runner.h"
#include "worker/input/dataset/decorated_dataset.h"
#include "worker/job/job_data.h"
#include "worker/job/job_names.h"

namespace shoal {
namespace {

struct PredictOptions {
  TrainedModelOptions model;
  ComputeOptions compute;
  std::vector<std::string> inputs;
  std::string output;
  bool overwrite = false;
  bool json = false;
  bool probabilities = false;
  int top = 0;
};

// A terminal shows at most this many examples.
constexpr uint64_t kMaxOnTerminal = 50;

using MakeFormat = std::unique_ptr<PredictionFormat> (*)(const PredictionRows&);

// Chooses the format by the name of the output file.
absl::StatusOr<MakeFormat> FormatOf(const PredictOptions& options) {
  const std::string& path = options.output;
  if (path.empty()) return options.json ? JsonPredictions : CsvPredictions;
  if (options.json) {
    return absl::InvalidArgumentError(
        "--json is for standard output; the format of a file follows its name: .npy, .csv or "
        ".jsonl");
  }
  const std::string endings[] = {".csv", ".jsonl", ".npy"};
  const MakeFormat formats[] = {CsvPredictions, JsonPredictions, NpyPredictions};
  SHOAL_ASSIGN_OR_RETURN(const size_t ending, EndingOf(path, endings));
  if (options.top == 0 || formats[ending] != NpyPredictions) return formats[ending];
  return absl::InvalidArgumentError("--top is for .csv and .jsonl; .npy holds all of the output");
}

// The first examples of a data set.
class FirstExamples : public DecoratedDataset {
 public:
  FirstExamples(std::unique_ptr<Dataset> all, uint64_t max)
      : DecoratedDataset(std::move(all)), size_(std::min(max, original().size())) {}
  uint64_t size() const override { return size_; }

 private:
  const uint64_t size_;
};

// Returns true if the model's output has a value for each class.
bool HasClasses(const TrainedModel& trained) {
  const Graph& graph = trained.model.model.graph;
  const Shape& output = graph.value(graph.outputs()[0]).shape;
  return output.size() == 2 && output[1] > 1;
}

// Returns the shape, class names and `top` of the rows. Rejects `top` for an output without
// classes.
absl::StatusOr<PredictionRows> RowsOf(const TrainedModel& trained, const Dataset& dataset,
                                      int top) {
  const Graph& graph = trained.model.model.graph;
  const Shape& output = graph.value(graph.outputs()[0]).shape;
  PredictionRows rows{
      .examples = dataset.size(),
      .shape = {output.begin() + 1, output.end()},
      .class_names = ClassNamesOfJob(trained.job).value_or(std::vector<std::string>()),
      .top = top};
  const bool classes = HasClasses(trained);
  if (top > 0 && !classes) {
    return absl::InvalidArgumentError(
        absl::StrCat("--top is for an output with a value for each class; that of the model ",
                     trained.model.model.name, " is ", ShapeToString(output)));
  }
  if (!classes || static_cast<int64_t>(rows.class_names.size()) != rows.shape[0])
    rows.class_names.clear();
  if (classes) rows.top = static_cast<int>(std::min<int64_t>(top, rows.shape[0]));
  return rows;
}

// Returns the `classes` of MakeProbabilities; nullopt if the output stays as it is.
std::optional<size_t> LogitsOf(const TrainedModel& trained) {
  if (!trained.model.loss->from_logits()) return std::nullopt;
  if (trained.model.loss->target() == Loss::Target::kProbabilityPerOutput) return 0;
  const Graph& graph = trained.model.model.graph;
  return static_cast<size_t>(graph.value(graph.outputs()[0]).shape.back());
}

// Writes predictions to a file or to standard output.
class Sink {
 public:
  explicit Sink(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}

  absl::Status Write(const std::string& text) {
    return file_ == nullptr ? PrintReport(text) : file_->Append(text);
  }
  absl::Status Finish() { return file_ == nullptr ? absl::OkStatus() : file_->Finish(); }

 private:
  const std::unique_ptr<OutputFile> file_;
};

absl::StatusOr<std::unique_ptr<ModelRunner>> RunnerOf(const TrainedModel& trained,
                                                      const ComputeOptions& compute) {
  ModelRunner::Options options = trained.model.RunnerOptions();
  SHOAL_RETURN_IF_ERROR(ChooseCompute(compute, &options));
  options.weighted = false;  // only the loss uses weights
  return CreateModelRunner(std::move(options));
}

// Prints how many examples are damaged, and why.
void PrintGaps(const GappedDataset& dataset, Console* console) {
  const uint64_t gaps = dataset.gaps();
  if (gaps == 0) return;
  const std::vector<std::string> reasons = dataset.reasons();
  for (const std::string& reason : reasons) console->PrintError("damaged: " + reason);
  console->PrintError(absl::StrCat(
      gaps > reasons.size() ? absl::StrCat("and ", gaps - reasons.size(), " more; ") : "", gaps,
      " of ", dataset.size(), gaps == 1 ? " examples has" : " examples have",
      " no prediction, as the job says \"damaged\": \"skip\""));
}

// Returns the line below the rows on a terminal: what it shows, and how to get all. Empty: it shows
// all. `brief`: it shows the highest output of an example with classes.
std::string DescribeShown(const PredictionRows& rows, uint64_t examples, bool brief) {
  const bool highest = brief && rows.top > 0, first = rows.examples < examples;
  if (!highest && !first) return "";
  return absl::StrCat(
      "Shown: ", highest ? "the highest output of " : "",
      first ? absl::StrCat("the first ", rows.examples, " of ",
                           FormatCount(static_cast<double>(examples)), " examples")
            : "each example",
      ". To write all outputs: --output FILE, with the ending .npy, .csv or .jsonl");
}

absl::Status Predict(PredictOptions options) {
  const bool terminal = options.output.empty() && TerminalStyle::Detect().terminal;
  // Without an output file, standard output is for the predictions only.
  Console console(options.output.empty() ? STDERR_FILENO : STDOUT_FILENO, STDERR_FILENO,
                  options.output.empty() ? TerminalStyle() : TerminalStyle::Detect());
  SHOAL_ASSIGN_OR_RETURN(const MakeFormat make_format, FormatOf(options));
  SHOAL_ASSIGN_OR_RETURN(const TrainedModel trained, LoadTrainedModel(options.model));
  for (const std::string& note : trained.notes) console.PrintError(note);
  for (const std::string& line : trained.overridden) console.PrintError(line);
  const std::vector<Feature> inputs = InputsOf(trained.model.model.graph);
  SHOAL_ASSIGN_OR_RETURN(const DataSource source,
                         ChooseInputs(trained.job, options.inputs, inputs));
  SHOAL_ASSIGN_OR_RETURN(std::unique_ptr<Dataset> opened, OpenDataset(source, inputs));
  const uint64_t examples = opened->size();
  if (terminal) opened = std::make_unique<FirstExamples>(std::move(opened), kMaxOnTerminal);
  // Without a flag for the form, a person wants to see classes and not logits.
  const bool brief = terminal && !options.json && !options.probabilities && options.top == 0;
  if (brief) {
    options.top = HasClasses(trained) ? 1 : 0;
    options.probabilities = true;
  }
  const auto dataset =
      std::make_shared<GappedDataset>(std::move(opened), /*allowed=*/source.damaged == "skip");
  SHOAL_ASSIGN_OR_RETURN(const PredictionRows rows, RowsOf(trained, *dataset, options.top));
  const std::unique_ptr<PredictionFormat> format = make_format(rows);
  const std::optional<size_t> logits = options.probabilities ? LogitsOf(trained) : std::nullopt;
  SHOAL_ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> runner,
                         RunnerOf(trained, options.compute));
  std::unique_ptr<OutputFile> file;
  if (!options.output.empty()) {
    auto created = OutputFile::Create(options.output, options.overwrite);
    SHOAL_RETURN_IF_ERROR(NameOverwriteFlag(created.status()));
    file = *std::move(created);
  }
  Sink sink(std::move(file));
  SHOAL_RETURN_IF_ERROR(sink.Write(format->Head()));
  DatasetPass pass(dataset, trained.job.batch_size);
  SHOAL_RETURN_IF_ERROR(ForEachBatch(&pass, "predicting", &console, [&](uint64_t batch) {
    SHOAL_ASSIGN_OR_RETURN(std::vector<float> output,
                           pass.Predict(batch, trained.parameters, runner.get()));
    if (logits.has_value()) MakeProbabilities(*logits, output);
    const StepRange range = pass.Range(batch);
    const size_t size = output.size() / range.count;
    std::string text;
    for (uint64_t i = 0; i < range.count; ++i) {
      const uint64_t example = range.first + i;
      const std::span<const float> values = std::span(output).subspan(i * size, size);
      format->AppendRow(dataset->NameOf(example),
                        dataset->IsGap(example) ? std::span<const float>() : values, &text);
    }
    return sink.Write(text);
  }));
  SHOAL_RETURN_IF_ERROR(NameOverwriteFlag(sink.Finish()));
  PrintGaps(*dataset, &console);
  if (const std::string shown = DescribeShown(rows, examples, brief); !shown.empty())
    console.PrintError(shown);
  if (!options.output.empty()) {
    console.Print(absl::StrCat(options.output, ": ",
                               FormatCount(static_cast<double>(rows.examples)),
                               rows.examples == 1 ? " prediction" : " predictions", " of ",
                               trained.checkpoint, ", step ", trained.step));
  }
  return console.Finish();
}

}  // namespace

void AddPredictCommand(CLI::App* app, Command* chosen) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* predict =
      app->add_subcommand("predict", "Compute the outputs of a trained model for new data");
  AddTrainedModelFlags(predict, &options->model);
  predict->add_option("INPUT", options->inputs,
                      "Pictures and folders of them, or one file of examples (NPY, IDX, .npz, CSV, "
                      "TFRecord), or `test` or `training`: those of the job [test]");
  predict->add_option(
      "-o,--output", options->output,
      "The file to write, in the format of its ending: .npy, .csv, .jsonl [standard "
      "output, as CSV; a terminal shows the class of the first 50 examples]");
  AddOverwriteFlag(predict, &options->overwrite);
  AddComputeFlags(predict, &options->compute);
  predict->add_flag("--json", options->json, "On standard output, as JSON lines");
  predict
      ->add_option("--top", options->top,
                   "Only the K highest outputs of each example, with their classes")
      ->check(CLI::Range(1, 1000000))
      ->type_name("K");
  predict->add_flag("--probabilities", options->probabilities,
                    "Softmax or sigmoid of the outputs, if the loss takes logits");
  predict->footer(
      "The output equals that of Keras's model.predict(), one row per example, in the order of the "
      "input; rows are\nnamed by their files, or numbered from 0, and classes by the folders that "
      "the model was trained on. Labels\nare not needed. Pictures are read as the job reads them. "
      "It writes a whole file or none.\n"
      "\nExamples:\n"
      "  shoal predict runs/flowers holiday/*.jpg --top 3\n"
      "  shoal predict runs/flowers holiday/ --probabilities --output flowers.csv\n"
      "  shoal predict runs/fashion_mnist --output test.npy\n"
      "  shoal predict runs/digits new.npy --json | jq .output\n"
      "\nExit codes: 0, 65 a damaged checkpoint or damaged data, 78 no checkpoint there, data that "
      "do not suit the model,\nor a file that exists already, 143 stopped, and nothing is "
      "written.");
  predict->callback(
      [options, chosen] { *chosen = [options] { return ReportStatus(Predict(*options)); }; });
}

}  // namespace shoal
