// The short commands of `shoal`, as a person types them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/local_cluster/child_process.h"
#include "common/base/version.h"
#include "tests/common/base/file_content.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/worker/input/formats/record_content.h"

namespace shoal {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

const std::string kSource = SHOAL_SOURCE_DIR;

struct Result {
  std::string exit;
  std::string output;
};

Result RunProgram(const std::string& program, const std::vector<std::string>& arguments) {
  auto shoal = ChildProcess::Spawn({.program = program, .arguments = arguments});
  if (!shoal.ok()) return {"", std::string(shoal.status().message())};
  Result result;
  pollfd readable = {.fd = (*shoal)->output(), .events = POLLIN};
  char buffer[4096];
  // Until the end of the output, or five minutes of silence.
  while (poll(&readable, 1, 300'000) == 1) {
    const ssize_t size = read(readable.fd, buffer, sizeof(buffer));
    if (size == 0) break;
    if (size > 0) result.output.append(buffer, size);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (std::chrono::steady_clock::now() < deadline) {
    if (const auto cause = (*shoal)->TryReap()) {
      result.exit = cause->ToString();
      break;
    }
  }
  return result;
}

Result Shoal(const std::vector<std::string>& arguments) {
  return RunProgram(SHOAL_BINARY, arguments);
}

class CommandsTest : public testing::Test {
 protected:
  std::string WriteFile(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }

  const TemporaryDirectory directory_;
};

// The commands that a help text lists below "Subcommands:", a line each: "  NAME   what it does".
std::vector<std::string> SubcommandsOf(const std::string& help) {
  std::vector<std::string> commands;
  std::istringstream lines(help);
  std::string line;
  while (std::getline(lines, line) && line != "Subcommands:") continue;
  while (std::getline(lines, line) && !line.empty()) {
    if (line.starts_with("  ") && line.size() > 2 && line[2] != ' ')
      commands.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return commands;
}

// A command, as the words after `shoal`, and its help.
struct CommandHelp {
  std::vector<std::string> command;
  Result help;
};

// Returns `shoal` itself and all commands below it.
std::vector<CommandHelp> AllCommands() {
  std::vector<CommandHelp> found;
  std::vector<std::vector<std::string>> commands = {{}};
  for (size_t i = 0; i < commands.size(); ++i) {
    std::vector<std::string> typed = commands[i];
    typed.push_back("--help");
    const Result help = Shoal(typed);
    found.push_back({commands[i], help});
    for (const std::string& below : SubcommandsOf(help.output)) {
      typed.back() = below;
      commands.push_back(typed);
    }
  }
  return found;
}

TEST_F(CommandsTest, HelpTeachesByExampleAtEveryLevel) {
  std::vector<std::vector<std::string>> commands;
  for (const auto& [command, help] : AllCommands()) {
    std::string typed = "shoal ";
    for (const std::string& word : command) typed += word + " ";
    EXPECT_EQ(help.exit, "exit code 0") << typed;
    EXPECT_THAT(help.output, AllOf(HasSubstr("Example"), HasSubstr(typed))) << typed;
    if (command.empty()) {
      for (const std::string& below : SubcommandsOf(help.output))
        EXPECT_THAT(help.output, HasSubstr("  shoal " + below + " "));
    }
    commands.push_back(command);
  }
  EXPECT_THAT(commands, IsSupersetOf<std::vector<std::string>>(
                            {{"export"}, {"predict"}, {"checkpoint", "now"}, {"model", "verify"}}));
}

TEST_F(CommandsTest, HelpIsACommandToo) {
  EXPECT_EQ(Shoal({"help"}).output, Shoal({"--help"}).output);
  EXPECT_EQ(Shoal({"help", "checkpoint", "list"}).output,
            Shoal({"checkpoint", "list", "--help"}).output);
  const Result unknown = Shoal({"help", "tarin"});
  EXPECT_EQ(unknown.exit, "exit code 64");
  EXPECT_THAT(unknown.output, AllOf(HasSubstr("`tarin`"), HasSubstr("`train`")));
}

// A run directory, an address or a job file, without a flag.
TEST_F(CommandsTest, RunsAddressesAndJobsNeedNoFlag) {
  std::filesystem::create_directory(directory_ / "run");
  const std::string run = directory_ / "run";
  WriteFile("run/chief.address", "127.0.0.1:1\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"status"}, {"checkpoint", "now"}, {"drain", "worker:0"}}) {
    for (const std::vector<std::string>& which : std::vector<std::vector<std::string>>{
             {run}, {"--run_dir", run}, {"127.0.0.1:1"}, {"--chief", "127.0.0.1:1"}}) {
      std::vector<std::string> typed = command;
      typed.insert(typed.end(), which.begin(), which.end());
      const Result result = Shoal(typed);
      EXPECT_EQ(result.exit, "exit code 138") << result.output;
      EXPECT_THAT(result.output, HasSubstr("127.0.0.1:1: ")) << command[0];
    }
    std::vector<std::string> typed = command;
    typed.insert(typed.end(), {run, "--chief", "127.0.0.1:1"});
    EXPECT_EQ(Shoal(typed).exit, "exit code 64") << "two of them";
  }
  const Result neither = Shoal({"status", directory_ / "nothing"});
  EXPECT_EQ(neither.exit, "exit code 78");
  EXPECT_THAT(neither.output, HasSubstr("nothing/chief.address"));
  const std::string job = kSource + "/examples/fashion_mnist/job.json";
  EXPECT_EQ(Shoal({"validate", job}).output, Shoal({"validate", "--job", job}).output);
}

TEST_F(CommandsTest, WrongUseIsAUsageError) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{},
                                                  {"trian"},
                                                  {"train"},
                                                  {"checkpoint"},
                                                  {"status", "--chief"},
                                                  {"model", "verify", "x", "--device", "gpu"},
                                                  {"bench", "model", "x", "--device", "auto"},
                                                  {"evaluate", "x", "--device", "gpu"},
                                                  {"evaluate", "x", "--device", "cuda:0,cuda:1"},
                                                  {"predict", "x", "--threads", "0"},
                                                  {"train", "x", "--device", "cuda"}}) {
    const Result result = Shoal(command);
    EXPECT_EQ(result.exit, "exit code 64") << result.output;
    EXPECT_THAT(result.output, HasSubstr("--help"));
  }
}

TEST_F(CommandsTest, OutputThatCannotBePrintedIsAFailure) {
  std::vector<std::vector<std::string>> commands = {
      {"--version"},
      {"metrics"},
      {"model", "summary", kSource + "/examples/fashion_mnist/model.json"},
      {"model", "verify", kSource + "/tests/golden/mlp"},
      {"validate", "--job", kSource + "/examples/fashion_mnist/job.json"}};
  for (const auto& [command, help] : AllCommands()) {
    commands.push_back(command);
    commands.back().push_back("--help");
  }
  for (std::vector<std::string> command : commands) {
    command.insert(command.begin(), {"-c", "exec \"$@\" >/dev/full", "sh", SHOAL_BINARY});
    const Result full = RunProgram("/bin/sh", command);
    EXPECT_EQ(full.exit, "exit code 138") << command[4];
    EXPECT_THAT(full.output, HasSubstr("standard output"));
    command[1] = "exec \"$@\" >&-";
    const Result closed = RunProgram("/bin/sh", command);
    EXPECT_EQ(closed.exit, "exit code 78") << command[4];
    EXPECT_THAT(closed.output, HasSubstr("standard output"));
  }
}

TEST_F(CommandsTest, NoArgumentIsEmpty) {
  int commands = 0;
  for (auto [command, help] : AllCommands()) {
    if (!SubcommandsOf(help.output).empty()) continue;
    command.push_back("");
    const Result result = Shoal(command);
    EXPECT_EQ(result.exit, "exit code 64") << help.output;
    EXPECT_THAT(result.output, AnyOf(HasSubstr("is empty"), HasSubstr("does not take ``")));
    ++commands;
  }
  EXPECT_GT(commands, 10);
}

TEST_F(CommandsTest, NoOptionTakesNothing) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"train", "job.json", "--run_dir", ""},
        {"status", "--run_dir", ""},
        {"status", "--chief", ""},
        {"drain", "", "--chief", "127.0.0.1:1"},
        {"checkpoint", "now", "--run_dir", ""},
        {"validate", "--job", "x", "--cluster_spec", ""}}) {
    const Result result = Shoal(command);
    EXPECT_EQ(result.exit, "exit code 64") << command[0];
    EXPECT_THAT(result.output, HasSubstr("is empty")) << command[0];
  }
}

TEST_F(CommandsTest, AnUnknownFlagIsNamed) {
  const Result typo = Shoal({"train", "job.json", "--epoch", "1"});
  EXPECT_EQ(typo.exit, "exit code 64");
  EXPECT_THAT(typo.output, AllOf(HasSubstr("`--epoch`"), HasSubstr("`--epochs`")));
  EXPECT_THAT(Shoal({"checkpoint", "now", "--rundir=x", "--chief", "a:1"}).output,
              AllOf(HasSubstr("`--rundir`"), HasSubstr("`--run_dir`")));
  EXPECT_THAT(Shoal({"metrics", "now"}).output, HasSubstr("`now`"));
}

TEST_F(CommandsTest, AMissingArgumentIsNamedWithAnExample) {
  EXPECT_THAT(Shoal({"drain"}).output, AllOf(HasSubstr("TASK (worker:INDEX, or chief)"),
                                             HasSubstr("shoal drain worker:1 10.0.0.1:2222\n")));
  EXPECT_THAT(Shoal({"drain", "worker:1"}).output,
              AllOf(HasSubstr("RUN, --chief, --run_dir"),
                    HasSubstr("shoal drain worker:1 10.0.0.1:2222\n")));
  EXPECT_THAT(Shoal({"checkpoint", "now"}).output,
              AllOf(HasSubstr("RUN, --chief, --run_dir"), HasSubstr(" shoal checkpoint now ")));
  EXPECT_THAT(Shoal({"train"}).output,
              AllOf(HasSubstr("JOB (The job file)"), HasSubstr(" shoal train job")));
  EXPECT_THAT(Shoal({"status", "x", "--chief", "a:1"}).output,
              AllOf(HasSubstr("[RUN,--chief,--run_dir]"), HasSubstr("--help")));
}

TEST_F(CommandsTest, NothingThatIsNamedSteersTheTerminal) {
  const std::string name = directory_ / "\x1b[2J\xc2\x9b";
  const Result result = Shoal({"model", "summary", name});
  EXPECT_THAT(result.output, HasSubstr("\\x1b[2J\\xc2\\x9b"));
  EXPECT_EQ(result.output.find('\x1b'), std::string::npos);
}

// From the root of a checkout; others are the reader's own.
TEST_F(CommandsTest, TheReadmeNamesExamplesThatAreThere) {
  std::ifstream readme(kSource + "/README.md");
  int commands = 0;
  for (std::string line; std::getline(readme, line);) {
    for (const std::string begin : {"shoal train ", "`shoal model summary "}) {
      if (!line.starts_with(begin)) continue;
      const std::string file =
          line.substr(begin.size(), line.find_first_of(" `", begin.size()) - begin.size());
      if (!file.starts_with("examples/")) continue;
      EXPECT_TRUE(std::filesystem::exists(kSource + "/" + file)) << line;
      ++commands;
    }
  }
  EXPECT_EQ(commands, 3);
}

TEST_F(CommandsTest, Version) {
  EXPECT_EQ(Shoal({"--version"}).output, absl::StrCat("shoal ", kVersion, "\n"));
}

TEST_F(CommandsTest, ModelSummaryOfTheExamples) {
  const Result cnn = Shoal({"model", "summary", kSource + "/examples/fashion_mnist/model.json"});
  EXPECT_EQ(cnn.exit, "exit code 0");
  EXPECT_THAT(cnn.output, AllOf(HasSubstr("conv2d_1 (Conv2D)"), HasSubstr("225,034")));
  const Result mlp =
      Shoal({"model", "summary", kSource + "/examples/fashion_mnist_mlp/model.json"});
  EXPECT_THAT(mlp.output, HasSubstr("10,020,874"));
  const Result archive =
      Shoal({"model", "summary", kSource + "/tests/common/archive/testdata/nested.keras"});
  EXPECT_EQ(archive.exit, "exit code 0");
  EXPECT_THAT(archive.output, HasSubstr("tower"));
}

TEST_F(CommandsTest, ModelSummaryNamesTheFileThatIsNoModel) {
  const std::string path = WriteFile("model.json", "[1]");
  const Result result = Shoal({"model", "summary", path});
  EXPECT_EQ(result.exit, "exit code 78");
  EXPECT_THAT(result.output, HasSubstr(path));
  WriteFile("model.json", R"({"class_name": "Sequential", "config": {"name": "m", "layers": [
      {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": "wide"}},
      {"class_name": "Dens", "config": {"name": "y", "units": 1}}]}})");
  EXPECT_THAT(Shoal({"model", "summary", path}).output,
              AllOf(HasSubstr("shoal: " + path + ": $.config.layers[0]"),
                    HasSubstr("\n" + path + ": $.config.layers[1]")));
}

TEST_F(CommandsTest, ModelSummaryOfAJobNamesItsModel) {
  const std::string example = kSource + "/examples/fashion_mnist/";
  const Result job = Shoal({"model", "summary", example + "job.json"});
  EXPECT_EQ(job.exit, "exit code 78");
  EXPECT_THAT(job.output, HasSubstr("shoal model summary " + example + "model.json"));
  const std::string path = WriteFile("job.json", R"({"name": "x", "model": {}})");
  EXPECT_THAT(Shoal({"model", "summary", path}).output, HasSubstr("$.model"));
}

TEST_F(CommandsTest, BenchModelSaysWhatEachOpTakes) {
  const std::string example = kSource + "/examples/fashion_mnist/";
  const std::vector<std::string> command = {
      "bench",     "model", example + "model.json", "--batch_size", "4", "--threads", "1",
      "--seconds", "0"};
  const Result text = Shoal(command);
  EXPECT_EQ(text.exit, "exit code 0") << text.output;
  EXPECT_THAT(text.output, AllOf(HasSubstr("batches of 4, 1 thread, 1 step\n"),
                                 HasSubstr("\nConv2DBackwardWeights "), HasSubstr("\nReorder "),
                                 HasSubstr(" of activations\n")));

  std::vector<std::string> as_json = command;
  as_json.push_back("--json");
  const nlohmann::json json = nlohmann::json::parse(Shoal(as_json).output);
  ASSERT_EQ(json["step_seconds"].size(), 1u) << json;
  EXPECT_TRUE(json["op_seconds"].contains("Conv2DBackwardWeights")) << json;
  for (const auto& [op, seconds] : json["op_seconds"].items()) {
    EXPECT_GT(seconds.get<double>(), 0) << op;
  }
  // Of 4 examples 26 x 26 x 32 outputs, of 3 x 3 x 1 products each, and 11 x 11 x 64 of 3 x 3 x 32.
  EXPECT_EQ(json["op_multiply_adds"]["Conv2D"], 9699840);
  EXPECT_GT(json["op_values"]["Conv2D"].get<int64_t>(), 0);
  EXPECT_GT(json["op_pieces"]["Conv2D"].get<int64_t>(), 0);
  EXPECT_TRUE(json["device_seconds"].is_null()) << json;
  EXPECT_GT(json["activation_bytes"].get<int64_t>(), 0);

  const Result job = Shoal({"bench", "model", example + "job.json"});
  EXPECT_EQ(job.exit, "exit code 78");
  EXPECT_THAT(job.output, HasSubstr("shoal bench model " + example + "model.json"));
}

TEST_F(CommandsTest, BenchModelRejectsWhatDoesNotFitInMemory) {
  const Result result =
      RunProgram("/bin/bash", {"-c", "ulimit -v 4000000; exec \"$@\"", "-", SHOAL_BINARY, "bench",
                               "model", kSource + "/examples/fashion_mnist/model.json",
                               "--batch_size", "1048576", "--seconds", "0"});
  EXPECT_EQ(result.exit, "exit code 78") << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("activations "), HasSubstr("--batch_size")));
}

// gRPC would abort the process.
TEST_F(CommandsTest, TooFewOpenFilesAreAMatterOfConfiguration) {
  const std::string job = kSource + "/examples/fashion_mnist/job.json";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{SHOAL_BINARY, "train", job},
        {SHOAL_BINARY, "status", "--chief", "127.0.0.1:1"},
        {SHOAL_BINARY, "drain", "worker:0", "127.0.0.1:1"}}) {
    std::vector<std::string> arguments = {"-c", "ulimit -n 12; exec \"$@\"", "-"};
    arguments.insert(arguments.end(), command.begin(), command.end());
    const Result result = RunProgram("/bin/bash", arguments);
    EXPECT_EQ(result.exit, "exit code 78") << result.output;
    EXPECT_THAT(result.output, AllOf(HasSubstr("12"), HasSubstr("ulimit -n 1024")));
  }
}

TEST_F(CommandsTest, HelpNamesTheChoiceOfAJobAndItsExitCodes) {
  for (const std::vector<std::string>& command : {std::vector<std::string>{"status", "--help"},
                                                  {"drain", "--help"},
                                                  {"checkpoint", "now", "--help"}}) {
    const std::string help = Shoal(command).output;
    EXPECT_THAT(help, AllOf(HasSubstr("\n  RUN "), HasSubstr("\n  --chief TEXT"),
                            Not(HasSubstr("Option Group")), HasSubstr("78")));
  }
  const Result neither = Shoal({"status"});
  EXPECT_EQ(neither.exit, "exit code 64");
  EXPECT_THAT(neither.output,
              AllOf(HasSubstr("--chief"), HasSubstr("--run_dir"), Not(HasSubstr("Option Group"))));
}

TEST_F(CommandsTest, ModelVerifyPassesOnAGoldenCase) {
  for (const char* device : {"cpu", "reference"}) {
    const Result result =
        Shoal({"model", "verify", kSource + "/tests/golden/mlp", "--device", device});
    EXPECT_EQ(result.exit, "exit code 0") << result.output;
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("gradient/dense/kernel"), HasSubstr("after/adam/loss")));
  }
}

TEST_F(CommandsTest, ModelVerifyFindsWhatKerasDidNotCompute) {
  const std::string copy = directory_ / "case";
  std::filesystem::copy(kSource + "/tests/golden/mlp", copy);
  // Another momentum than the one Keras computed with.
  std::string changed = FileContent(copy + "/case.json");
  const size_t momentum = changed.find("\"momentum\": 0.9");
  ASSERT_NE(momentum, std::string::npos) << changed;
  changed.replace(momentum, 15, "\"momentum\": 0.8");
  std::ofstream(copy + "/case.json") << changed;
  const Result result = Shoal({"model", "verify", copy});
  EXPECT_EQ(result.exit, "exit code 65") << result.output;
  EXPECT_THAT(result.output, HasSubstr("TOO FAR"));
}

TEST_F(CommandsTest, ModelVerifyWithoutACase) {
  const Result result = Shoal({"model", "verify", "/no/such/case"});
  EXPECT_EQ(result.exit, "exit code 78");
  EXPECT_THAT(result.output, HasSubstr("/no/such/case"));
}

TEST_F(CommandsTest, CheckpointListWithoutARun) {
  const Result result = Shoal({"checkpoint", "list", "/no/such/run"});
  EXPECT_EQ(result.exit, "exit code 78");
  EXPECT_THAT(result.output, HasSubstr("/no/such/run"));
}

TEST_F(CommandsTest, AnUnknownCommandIsNamed) {
  const Result typo = Shoal({"tarin", "job.json"});
  EXPECT_EQ(typo.exit, "exit code 64");
  EXPECT_THAT(typo.output, AllOf(HasSubstr("`tarin`"), HasSubstr("`train`")));
  for (const std::string word : {"isue", "revoke"}) {
    const Result second = Shoal({"cert", word, "ca", "ps/0", "tls"});
    EXPECT_EQ(second.exit, "exit code 64");
    EXPECT_THAT(second.output,
                AllOf(HasSubstr("`shoal cert`"), HasSubstr("`" + word + "`"), HasSubstr("issue")));
  }
  EXPECT_THAT(Shoal({"cert"}).output, AllOf(HasSubstr("`shoal cert`"), HasSubstr("check")));
  EXPECT_THAT(Shoal({"status"}).output, HasSubstr("--chief"));
}

TEST_F(CommandsTest, StatusOfNobody) {
  const Result nobody = Shoal({"status", "--chief", "127.0.0.1:1"});
  EXPECT_EQ(nobody.exit, "exit code 138");
  EXPECT_THAT(nobody.output, HasSubstr("127.0.0.1:1: "));
  const Result no_port = Shoal({"status", "--chief", "127.0.0.1"});
  EXPECT_EQ(no_port.exit, "exit code 78");
  EXPECT_THAT(no_port.output, HasSubstr("127.0.0.1"));
}

TEST_F(CommandsTest, StatusOfARunThatIsOver) {
  WriteFile("chief.address", "127.0.0.1:1\n");
  const Result over = Shoal({"status", "--run_dir", directory_.path()});
  EXPECT_EQ(over.exit, "exit code 138");
  EXPECT_THAT(over.output, HasSubstr("shoal checkpoint list " + directory_.path()));
}

TEST_F(CommandsTest, ValidateSaysWhatAJobNeeds) {
  const std::string spec = WriteFile(
      "spec.json",
      R"({"cluster": {"chief": ["a:1"], "ps": ["b:1", "c:1"], "worker": ["d:1", "e:1"]}})");
  const Result result = Shoal(
      {"validate", "--cluster_spec", spec, "--job", kSource + "/examples/fashion_mnist/job.json"});
  EXPECT_EQ(result.exit, "exit code 0") << result.output;
  EXPECT_THAT(result.output,
              AllOf(HasSubstr("225034"), HasSubstr("ps 1 at c:1"), HasSubstr("steps")));
}

TEST_F(CommandsTest, AStepBelowZeroIsAWrongFlag) {
  const Result result =
      Shoal({"dataset", "show", kSource + "/examples/fashion_mnist/job.json", "--step", "-1"});
  EXPECT_EQ(result.exit, "exit code 64") << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("--step"), HasSubstr("-1")));
}

TEST_F(CommandsTest, ValidateShowsAllErrorsOfBoth) {
  const std::string spec = WriteFile("bad_spec.json", R"({"cluster": {"ps": ["b"]}})");
  const std::string job =
      WriteFile("bad_job.json", R"({"name": "x", "batch_size": 0, "epoch": 1})");
  const Result result = Shoal({"validate", "--cluster_spec", spec, "--job", job});
  EXPECT_EQ(result.exit, "exit code 78");
  EXPECT_THAT(result.output, AllOf(HasSubstr("chief"), HasSubstr("$.cluster.ps"),
                                   HasSubstr("$.batch_size"), HasSubstr("$.epoch")));
}

// A job with a model of one input number and three classes, and its data files.
class ValidateDataTest : public CommandsTest {
 protected:
  // IDX: bytes, `rows` of one number, or one number each.
  static std::string Idx(uint8_t rows, bool matrix) {
    std::string bytes = {0, 0, 8, static_cast<char>(matrix ? 2 : 1),
                         0, 0, 0, static_cast<char>(rows)};
    if (matrix) bytes += std::string({0, 0, 0, 1});
    return bytes + std::string(rows, '\1');
  }

  Result Validate(const std::string& data =
                      R"({"training": {"images": "a.images", "labels": "a.labels"},
              "test": {"images": "b.images", "labels": "b.labels"}})") const {
    return Shoal({"validate", "--job", WriteFile("job.json", R"({
      "name": "small",
      "model": {"class_name": "Sequential", "config": {"name": "m", "layers": [
        {"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [null, 1]}},
        {"class_name": "Dense", "config": {"name": "y", "units": 3}}]}},
      "data": )" + data + R"(,
      "loss": "sparse_categorical_crossentropy", "optimizer": "sgd", "epochs": 2})")});
  }

  void WriteData(const std::string& set, uint8_t images, uint8_t labels) const {
    WriteFile(set + ".images", Idx(images, true));
    WriteFile(set + ".labels", Idx(labels, false));
  }
};

// The usual 1024 are fewer than the shards of a large set.
TEST_F(ValidateDataTest, MoreFilesThanTheLimitOfOpenOnesThatCanBeRaised) {
  constexpr int kFiles = 200;
  const std::string record =
      TfRecordOf(ExampleOf({{"x", FloatFeature({1})}, {"y", IntegerFeature(2)}}));
  for (int i = 0; i < kFiles; ++i) WriteFile(absl::StrCat(i, ".tfrecord"), record);
  const std::string shards = R"({"format": "tfrecord", "path": "*.tfrecord",
                                 "features": "x", "labels": "y"})";
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_GT(before.rlim_max, 2 * kFiles);
  const rlimit low = {.rlim_cur = kFiles, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const Result result = Validate(absl::StrCat(R"({"training": )", shards, "}"));
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(result.exit, "exit code 0") << result.output;
  EXPECT_THAT(result.output, Not(HasSubstr("open files")));
}

TEST_F(ValidateDataTest, AModelOfTwoInputsNeedsBothByName) {
  const Result result = Shoal({"validate", "--job", WriteFile("job.json", R"({
      "name": "two",
      "model": {"class_name": "Functional", "config": {"name": "two", "layers": [
        {"class_name": "InputLayer", "config": {"name": "a", "batch_shape": [null, 1]},
         "inbound_nodes": []},
        {"class_name": "InputLayer", "config": {"name": "b", "batch_shape": [null, 1]},
         "inbound_nodes": []},
        {"class_name": "Add", "config": {"name": "sum"},
         "inbound_nodes": [[["a", 0, 0, {}], ["b", 0, 0, {}]]]},
        {"class_name": "Dense", "config": {"name": "y", "units": 1},
         "inbound_nodes": [[["sum", 0, 0, {}]]]}],
        "input_layers": [["a", 0, 0], ["b", 0, 0]], "output_layers": [["y", 0, 0]]}},
      "data": {"training": {"images": "a.images", "labels": "a.labels"}},
      "loss": "mse", "optimizer": "sgd", "epochs": 2})")});
  EXPECT_EQ(result.exit, "exit code 78") << result.output;
  EXPECT_THAT(result.output, HasSubstr("2 inputs, \"a\", \"b\""));
}

TEST_F(ValidateDataTest, BothSetsAreLookedAt) {
  WriteData("a", 50, 50);
  WriteData("b", 7, 7);
  const Result result = Validate();
  EXPECT_EQ(result.exit, "exit code 0") << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("50 examples"), HasSubstr("test set: 7 examples")));
}

TEST_F(ValidateDataTest, AllMissingFilesAreNamed) {
  const Result result = Validate();
  EXPECT_EQ(result.exit, "exit code 0") << result.output;
  for (const char* name : {"a.images", "a.labels", "b.images", "b.labels"}) {
    EXPECT_THAT(result.output, HasSubstr("\n  " + (directory_ / name) + ": "));
  }
}

TEST_F(ValidateDataTest, AMissingTestSetIsNamedAndTheStepsAreKnown) {
  WriteData("a", 50, 50);
  const Result result = Validate();
  EXPECT_EQ(result.exit, "exit code 0") << result.output;
  EXPECT_THAT(result.output, AllOf(HasSubstr("50 examples"), HasSubstr(directory_ / "b.images"),
                                   HasSubstr(directory_ / "b.labels")));
}

TEST_F(ValidateDataTest, ATestSetThatIsWrongIsAnError) {
  WriteData("a", 50, 50);
  WriteData("b", 7, 8);
  const Result uneven = Validate();
  EXPECT_EQ(uneven.exit, "exit code 78") << uneven.output;
  EXPECT_THAT(uneven.output, AllOf(HasSubstr("7 examples"), HasSubstr("8 labels")));

  WriteFile("b.images", "junk");
  const Result junk = Validate();
  EXPECT_EQ(junk.exit, "exit code 65") << junk.output;
  EXPECT_THAT(junk.output, HasSubstr(directory_ / "b.images"));

  // Labels that do not suit the loss.
  std::string two_each = Idx(7, true) + std::string(7, '\1');
  two_each[11] = 2;
  WriteFile("b.images", Idx(7, true));
  WriteFile("b.labels", two_each);
  const Result labels = Validate();
  EXPECT_EQ(labels.exit, "exit code 78") << labels.output;
  EXPECT_THAT(labels.output, AllOf(HasSubstr("b.labels"), HasSubstr("(2,)")));
}

}  // namespace
}  // namespace shoal
