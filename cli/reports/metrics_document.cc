#include "cli/reports/metrics_document.h"

#include <sstream>
#include <string_view>

#include "common/metrics/metric_catalog.h"

namespace shoal {
namespace {

constexpr char kMetricsIntroduction[] =
    "# Metrics\n"
    "\n"
    "<!-- Made by `shoal metrics`; a test compares. -->\n"
    "\n"
    "What `/metrics` of each daemon has, at the port of `--http_port`. "
    "[monitoring.md](monitoring.md) "
    "says how to watch them.\n"
    "Counters count from the start of their process. Durations are in seconds, sizes in bytes.\n";

struct Section {
  std::string_view daemon;
  std::string_view title;
};
constexpr Section kSections[] = {{"every", "Every daemon"},
                                 {"coordinator", "The coordinator"},
                                 {"ps", "A ps"},
                                 {"worker", "A worker"}};

std::string_view KindName(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter:
      return "counter";
    case MetricKind::kGauge:
      return "gauge";
    case MetricKind::kHistogram:
      break;
  }
  return "histogram";
}

void WriteRow(const MetricDescription& metric, std::ostream& out) {
  out << "| `" << metric.name << "` | " << KindName(metric.kind) << " |";
  for (const std::string_view label : metric.labels) {
    if (!label.empty()) out << " `" << label << "`";
  }
  out << " | " << metric.help;
  for (size_t i = 0; i < metric.bounds.size(); ++i)
    out << (i == 0 ? " Buckets: " : ", ") << metric.bounds[i];
  out << (metric.bounds.empty() ? " |\n" : ". |\n");
}

}  // namespace

std::string MetricsDocument() {
  std::ostringstream out;
  out << kMetricsIntroduction;
  for (const Section& section : kSections) {
    out << "\n## " << section.title
        << "\n\n| metric | kind | labels | what it says |\n|---|---|---|---|\n";
    for (const MetricDescription& metric : kMetricCatalog) {
      if (metric.daemon == section.daemon) WriteRow(metric, out);
    }
  }
  return out.str();
}

}  // namespace shoal
