#include <CLI/CLI.hpp>

#include "cli/commands/command.h"
#include "cli/reports/metrics_document.h"

namespace shoal {

void AddMetricsCommand(CLI::App* app, Command* chosen) {
  CLI::App* metrics = app->add_subcommand("metrics", "List the metrics of the daemons");
  metrics->footer(
      "Markdown, as in docs/metrics.md. The figures themselves: curl http://HOST:PORT/metrics, at "
      "the port of a daemon's --http_port\n(with --tls_dir, https and a certificate: "
      "docs/security.md, Prometheus).\n"
      "\nExample:\n  shoal metrics");
  metrics->callback(
      [chosen] { *chosen = [] { return ReportStatus(PrintReport(MetricsDocument())); }; });
}

}  // namespace shoal
