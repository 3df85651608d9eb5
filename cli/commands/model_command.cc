#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "cli/commands/command.h"
#include "cli/display/text_table.h"
#include "cli/flags/device_check.h"
#include "cli/flags/model_in_file.h"
#include "cli/golden_case/golden_case.h"
#include "cli/reports/layers_document.h"
#include "cli/reports/model_summary.h"
#include "common/base/status_macros.h"
#include "common/daemon/process/exit_code.h"

namespace shoal {
namespace {

absl::Status Summarize(const std::string& path) {
  SHOAL_ASSIGN_OR_RETURN(const KerasModel model, ReadModel(path, "model summary"));
  return PrintReport(SummarizeModel(model));
}

void AddSummary(CLI::App* model, Command* chosen) {
  auto path = std::make_shared<std::string>();
  CLI::App* summary = model->add_subcommand("summary", "Show layers, shapes and parameters");
  summary
      ->add_option("MODEL", *path,
                   "File with the text of Keras's model.to_json(), or of model.save()")
      ->required();
  summary->footer("Example:\n  shoal model summary examples/fashion_mnist/model.json");
  summary->callback([=] { *chosen = [=] { return ReportStatus(Summarize(*path)); }; });
}

void AddLayers(CLI::App* model, Command* chosen) {
  CLI::App* layers =
      model->add_subcommand("layers", "List the layers and options that models may have");
  layers->footer("Markdown, as in docs/layers.md.\n\nExample:\n  shoal model layers");
  layers->callback(
      [chosen] { *chosen = [] { return ReportStatus(PrintReport(LayersDocument())); }; });
}

struct VerifyOptions {
  std::string directory;
  std::string device = "cpu";
};

std::string ErrorText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1e", value);
  return text;
}

int Verify(const VerifyOptions& options) {
  const auto rows = VerifyGoldenCase(options.directory, options.device);
  if (!rows.ok()) return ReportStatus(rows.status());
  TextTable table({"<tensor", "largest relative error", "tolerance", "<"});
  bool all_within = true, all_supported = true;
  for (const GoldenRow& row : *rows) {
    if (!row.not_supported.empty()) {
      all_supported = false;
      table.AddRow({row.what, "", "", "not supported: " + row.not_supported});
      continue;
    }
    all_within = all_within && row.ok;
    if (!row.left_over.empty()) {
      table.AddRow({row.what, "", "", "NOT COMPARED: " + row.left_over});
      continue;
    }
    table.AddRow({row.what, ErrorText(row.largest_relative_error), ErrorText(row.tolerance),
                  row.ok ? "ok" : "TOO FAR"});
  }
  const int code = ReportStatus(PrintReport(table.ToString()));
  if (!all_within) return kExitBadData;
  return all_supported ? code : static_cast<int>(kExitBadConfiguration);
}

void AddVerify(CLI::App* model, Command* chosen) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* verify = model->add_subcommand("verify", "Compare Shoal's results with Keras's");
  verify->add_option("CASE_DIR", options->directory, "A case, as docs/keras-parity.md describes it")
      ->required();
  verify
      ->add_option("--device", options->device,
                   "cpu or cuda:N, as for workers; reference: plain loops")
      ->check(DeviceCheck({.automatic = false, .several = false}))
      ->capture_default_str();
  verify->footer(
      "All layers compute in float32, whatever their dtype policies are.\n\n"
      "Example:\n  shoal model verify tests/golden/fashion_cnn\n"
      "\nExit codes: 0 all within tolerance, 65 something is not or was not compared, 78 Shoal "
      "lacks what the case "
      "uses.");
  verify->callback([=] { *chosen = [=] { return Verify(*options); }; });
}

}  // namespace

void AddModelCommand(CLI::App* app, Command* chosen) {
  CLI::App* model = app->add_subcommand("model", "Examine Keras models and check Shoal's results");
  model->require_subcommand(1);
  AddSummary(model, chosen);
  AddLayers(model, chosen);
  AddVerify(model, chosen);
  model->footer(
      "Examples:\n"
      "  shoal model summary examples/fashion_mnist/model.json\n"
      "  shoal model verify tests/golden/fashion_cnn");
}

}  // namespace shoal
