#pragma once

#include "common/metrics/metric_samples.h"

namespace shoal {

// Adds CPU, memory, descriptors, threads and lost log lines of this process, and its version. Any
// thread. Omits stats that the system does not report.
void CollectProcessStats(MetricSamples* out);

}  // namespace shoal
