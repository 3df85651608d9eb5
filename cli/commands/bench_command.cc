#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/commands/command.h"
#include "cli/flags/device_check.h"
#include "cli/flags/model_in_file.h"
#include "cli/local_cluster/daemon_commands.h"
#include "cli/reports/model_bench.h"
#include "common/base/status_macros.h"

namespace shoal {
namespace {

struct BenchOptions {
  std::string model;
  ModelBenchOptions bench = {.threads = ThreadsPerWorker(1)};
  bool json = false;
};

absl::Status Bench(const BenchOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const KerasModel model, ReadModel(options.model, "bench model"));
  SHOAL_ASSIGN_OR_RETURN(const ModelBenchResult result, BenchModel(model, options.bench));
  return PrintReport(options.json ? ModelBenchJson(result) : ModelBenchText(result));
}

void AddModel(CLI::App* bench, Command* chosen) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* model = bench->add_subcommand("model", "Time training steps of a Keras model");
  model
      ->add_option("MODEL", options->model,
                   "File with the text of Keras's model.to_json(), or of model.save()")
      ->required();
  model->add_option("--batch_size", options->bench.batch_size, "Examples of a step")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20))
      ->capture_default_str();
  model->add_option("--threads", options->bench.threads, "Compute threads [the cores]")
      ->check(CLI::Range(1, 1024));
  model->add_option("--seconds", options->bench.seconds, "Starts steps for this long")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  model
      ->add_option("--device", options->bench.device,
                   "cpu, cuda:N, or several, as in cuda:0,cuda:1, as for workers; reference: "
                   "plain loops")
      ->check(DeviceCheck({.automatic = false}))
      ->capture_default_str();
  model->add_flag(
      "--tf32", options->bench.tf32,
      "On a GPU: multiply float32 with tensor cores, which read 19 bits of each number");
  model->add_flag("--deterministic", options->bench.deterministic,
                  "On a GPU: repeat a step with the same bits, as under sync");
  model->add_flag("--json", options->json, "As one line of JSON, with the times of all steps");
  model->footer(
      "The gradients of a batch, as a worker computes them, on made-up examples: no data is read, "
      "and no optimizer applies them. Other programs on the machine slow steps down, so look at "
      "the fastest one.\n\nExamples:\n"
      "  shoal bench model examples/fashion_mnist/model.json\n"
      "  shoal bench model resnet50.keras --batch_size 16 --threads 1 --json | jq .op_seconds");
  model->callback([=] { *chosen = [=] { return ReportStatus(Bench(*options)); }; });
}

}  // namespace

void AddBenchCommand(CLI::App* app, Command* chosen) {
  CLI::App* bench = app->add_subcommand("bench", "Measure how fast this machine computes");
  bench->require_subcommand(1);
  AddModel(bench, chosen);
  bench->footer("Example:\n  shoal bench model examples/fashion_mnist/model.json");
}

}  // namespace shoal
